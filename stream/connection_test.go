package stream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The tests in this file are of clients and servers of net/http, in a network in memory.
const (
	short = 2 * time.Second // a limit that fires
	long  = 30 * time.Second
)

// serve runs h.
func serve(t *testing.T, h http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	simnet.Start(srv)
	base := &http.Transport{}
	simnet.Reach(base)
	t.Cleanup(func() {
		base.CloseIdleConnections()
		srv.Close()
	})
	return srv, base
}

func ask(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	return req
}

func begin(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	say(w, text)
}

func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// silent fails the test if a silence was not found at the limit.
func silent(t *testing.T, start time.Time) {
	t.Helper()
	if d := time.Since(start); d != short {
		t.Errorf("after %v", d)
	}
}

// SPEC 3.5: a silence is found at the limit, to the nanosecond.
func TestServerGoesSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			begin(w, "data: a\n\ndata: b\n\n")
			<-r.Context().Done()
		})
		start := time.Now()
		got, err := fetch(&http.Client{Transport: &stream.Transport{Base: base, Idle: short}}, ask(t, srv.URL))
		if got != "data: a\n\ndata: b\n\n" || !errors.Is(err, timeout.ErrIdle) {
			t.Errorf("%q, %v", got, err)
		}
		silent(t, start)
	})
}

func TestServerNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, base := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for name, rt := range map[string]http.RoundTripper{
			"Transport":     &stream.Transport{Base: base, Idle: short},
			"Notifications": &stream.Notifications{Base: base, Idle: short},
		} {
			start := time.Now()
			_, err := fetch(&http.Client{Transport: rt}, ask(t, srv.URL))
			var e *url.Error
			if !errors.Is(err, timeout.ErrIdle) || !errors.As(err, &e) || !e.Timeout() {
				t.Errorf("%s: %v", name, err)
			}
			silent(t, start)
		}
	})
}

// A server that sends a byte per eighth of the limit is not silent.
func TestServerTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 2500 * time.Millisecond
		srv, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				say(w, "x")
				time.Sleep(idle / 8)
			}
		})
		got, err := fetch(&http.Client{Transport: &stream.Transport{Base: base, Idle: idle}}, ask(t, srv.URL))
		if got != "xxxxxxxxxx" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A stream that is cut in every possible way yields each event once.
func TestServerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := []func(w http.ResponseWriter, r *http.Request){
			func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(w http.ResponseWriter, _ *http.Request) { say(w, "id: cut\ndata: ha") },
			func(w http.ResponseWriter, _ *http.Request) { say(w, "data: ha"); panic(http.ErrAbortHandler) },
			func(w http.ResponseWriter, r *http.Request) { say(w, "data: ha"); <-r.Context().Done() },
			func(http.ResponseWriter, *http.Request) {},
		}
		var n atomic.Int32
		srv, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			i := int(n.Add(1)) - 1
			if i == len(cut) {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			if want := fmt.Sprint("e", i-1); i > 0 && r.Header.Get("Last-Event-ID") != want {
				t.Errorf("Last-Event-ID is %q, want %q", r.Header.Get("Last-Event-ID"), want)
			}
			begin(w, fmt.Sprintf("id: e%d\ndata: %d\n\n", i, i))
			cut[i](w, r)
		})
		got, err := fetch(&http.Client{Transport: &stream.Notifications{Base: base, Idle: short}}, ask(t, srv.URL))
		var want strings.Builder
		for i := range cut {
			fmt.Fprintf(&want, "id: e%d\ndata: %d\n\n", i, i)
		}
		var gone *stream.ReopenError
		if got != want.String() || !errors.As(err, &gone) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A stream survives a restart of its server at the same address.
func TestServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(addr net.Addr, text string) *http.Server {
			l := simnet.Listen(addr)
			srv := &http.Server{Addr: l.Addr().String(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w, text)
				<-r.Context().Done()
			})}
			go func() { _ = srv.Serve(l) }()
			return srv
		}
		srv := run(nil, "data: a\n\n")
		addr, err := net.ResolveTCPAddr("tcp", srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		base := &http.Transport{}
		simnet.Reach(base)
		defer base.CloseIdleConnections()
		resp, err := (&http.Client{Transport: &stream.Notifications{Base: base, Idle: long}}).Do(ask(t, "http://"+srv.Addr))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		hear := func(want string) {
			t.Helper()
			if !lines.Scan() || lines.Text() != want || !lines.Scan() {
				t.Fatalf("%q, %v, want %q", lines.Text(), lines.Err(), want)
			}
		}
		hear("data: a")
		_ = srv.Close()
		again := make(chan *http.Server, 1)
		time.AfterFunc(700*time.Millisecond, func() { again <- run(addr, "data: b\n\n") }) // so that at least one attempt fails
		hear("data: b")
		_ = resp.Body.Close()
		_ = (<-again).Close()
	})
}
