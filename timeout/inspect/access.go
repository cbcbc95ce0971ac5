package inspect

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// fromHere reports whether a request comes from a client on this machine (SPEC 14.3): its remote
// address is local, no proxy has forwarded it, and its Host is a name that only this machine has.
// The last condition protects against DNS rebinding: if a site's name is made to resolve to
// 127.0.0.1, requests from its pages carry that name.
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
		host = hostport // there was no port
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// sameOrigin reports whether the request was made without the help of another site. A link to the
// page is allowed wherever it is, because the site with the link learns nothing from it.
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
