package stream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/stream"
)

// Guarantee 9: an upgraded connection works in both directions through a limited proxy of net/http, and is closed when
// it goes silent.
func TestUpgrade(t *testing.T) {
	serve := func(t *testing.T, h http.HandlerFunc) (string, *http.Transport) {
		srv := httptest.NewUnstartedServer(h)
		simnet.Start(srv)
		base := new(http.Transport)
		simnet.Reach(base)
		t.Cleanup(func() {
			base.CloseIdleConnections()
			srv.Close()
		})
		return srv.URL, base
	}
	synctest.Test(t, func(t *testing.T) {
		echo, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			_, _ = rw.WriteString(line)
			_ = rw.Flush()
			_, _ = rw.ReadString('\n')
		})
		target, _ := url.Parse(echo)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &stream.Transport{Base: base, Idle: limit}
		front, outer := serve(t, proxy.ServeHTTP)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
		resp, err := outer.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.WriteString(resp.Body.(io.Writer), "hello\n"); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body) // ends because the proxy detects the silence
		if string(got) != "hello\n" {
			t.Errorf("%q", got)
		}
	})
}
