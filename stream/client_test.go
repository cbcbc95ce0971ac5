package stream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/stream"
)

// Guarantee 9: an upgraded connection works in both directions through a limited proxy, and is
// closed when it goes silent.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
		target, _ := url.Parse(srv.URL)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &stream.Transport{Base: base, Idle: short}
		front, outer := serve(t, proxy.ServeHTTP)
		req := ask(t, front.URL)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
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

// Guarantee 6: http.Client.Timeout cancels a request by other means than its context's deadline,
// and still does not end the stream.
func TestClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Second // in which the header must come
		srv, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			begin(w, "data: a\n\n")
			time.Sleep(limit + limit/2)
			say(w, "data: b\n\n")
			<-r.Context().Done()
		})
		client := &http.Client{Transport: &stream.Notifications{Base: base, Idle: long}, Timeout: limit}
		resp, err := client.Do(ask(t, srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, len("data: a\n\ndata: b\n\n"))
		if _, err := io.ReadFull(resp.Body, p); err != nil || string(p) != "data: a\n\ndata: b\n\n" {
			t.Errorf("%q, %v", p, err)
		}
		_ = resp.Body.Close()
	})
}

// Close, silence, chunks and cancellation happen at about the same time, for the race detector and
// the count of goroutines.
func TestAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			begin(w, "data: a\n\n")
			time.Sleep(time.Millisecond)
			say(w, "data: b")
			if r.URL.Path != "/end" {
				<-r.Context().Done()
			}
		})
		client := &http.Client{Transport: &stream.Notifications{Base: base, Idle: time.Millisecond}}
		var wg sync.WaitGroup
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := client.Do(ask(t, srv.URL+[]string{"/end", "/hang"}[i%2]).WithContext(ctx))
			if err != nil { // the header took longer than the limit
				cancel()
				continue
			}
			wg.Go(func() {
				defer cancel()
				_, _ = io.Copy(io.Discard, resp.Body)
			})
			wg.Go(func() {
				time.Sleep(time.Duration(i%20) * 200 * time.Microsecond)
				if i%3 == 0 {
					cancel()
				}
				_ = resp.Body.Close()
			})
		}
		wg.Wait()
	})
}

// A connection is reused after its body has been read to the end, and a trace in the context still
// works.
func TestConnectionIsReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Sum")
			say(w, "all")
			w.Header().Set("Sum", "3")
		})
		client := &http.Client{Transport: &stream.Transport{Base: base, Idle: long}}
		for i := range 3 {
			var reused bool
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
			resp, err := client.Do(ask(t, srv.URL).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != "all" || err != nil || resp.Trailer.Get("Sum") != "3" {
				t.Errorf("%q, %v, trailer %v", got, err, resp.Trailer)
			}
			_ = resp.Body.Close()
			if reused != (i > 0) {
				t.Errorf("request %d: reused %v", i, reused)
			}
		}
	})
}

// Over HTTP/2 a silent stream is closed and its connection is not.
func TestHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns atomic.Int32
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("protocol %s", r.Proto)
			}
			begin(w, "data: a\n\n")
			<-r.Context().Done()
		}))
		srv.EnableHTTP2 = true
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		}
		simnet.Start(srv)
		defer srv.Close()
		client := &http.Client{Transport: &stream.Notifications{Base: srv.Client().Transport, Idle: short}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := client.Do(ask(t, srv.URL).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		p := make([]byte, 3*len("data: a\n\n"))
		if _, err := io.ReadFull(resp.Body, p); err != nil || conns.Load() != 1 {
			t.Errorf("%q, %v, %d connections", p, err, conns.Load())
		}
	})
}
