package inspect

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// fromHere reports whether a request comes from a client on this machine (SPEC 14.3): its remote address is a loopback
// address, it has no header of a proxy, and its Host is a name of this machine alone. The last condition protects
// against DNS rebinding: if another site makes its name resolve to 127.0.0.1, requests from its pages carry that name.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for header := range r.Header {
		if strings.HasPrefix(header, "X-Forwarded") || slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, header) {
			return false
		}
	}
	return isLocalName(r.Host)
}

func isLocalName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport // hostport has no port
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// sameOrigin reports whether no page of another site has made the request, except by a link to this page. Such a link
// is allowed, because the other site learns nothing from it.
func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Method != http.MethodPost && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
