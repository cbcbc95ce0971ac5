package inspect

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// fromHere reports whether a request comes from this machine and means it (SPEC 14.3): its
// other end is this machine, it was not forwarded by a proxy that is, and it asks for a name
// that only this machine has. The last is against DNS rebinding: a page of a site whose name
// has come to mean 127.0.0.1 sends that site's name.
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
		host = hostport // without a port
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// sameOrigin reports whether no other site has a hand in the request. Following a link to the
// page is all right, wherever the link is: who has it learns nothing from that.
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
