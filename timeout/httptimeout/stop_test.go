package httptimeout_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// protocols runs f with get, which sends a request for h over each protocol, on a connection that
// has been used before: only there does Go's client repeat a request.
func protocols(t *testing.T, h http.Handler, f func(t *testing.T, get func() (*http.Response, string, error))) {
	t.Helper()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		bubble(t, proto, func(t *testing.T) {
			var served atomic.Int32
			mux := http.NewServeMux()
			mux.HandleFunc("/warm", func(http.ResponseWriter, *http.Request) {})
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				h.ServeHTTP(w, r)
			})
			s := httptest.NewUnstartedServer(mux)
			s.EnableHTTP2 = proto == "HTTP/2.0"
			simnet.Start(s)
			t.Cleanup(s.Close)
			request := func(path string) (*http.Response, string, error) { return getPath(t, s, path) }
			if res, _, err := request("/warm"); err != nil || res.Proto != proto {
				t.Fatal(res, err)
			}
			f(t, func() (*http.Response, string, error) { return request("/") })
			if n := served.Load(); n != 1 {
				t.Errorf("the handler has run %d times", n)
			}
		})
	}
}

// Guarantee 3: whatever a stopped handler has written, the client gets an answer, and the handler
// runs once. Up to 2 KiB that were not flushed are replaced by the 503; more are sent, and cut.
func TestClientIsNeverLeftToGuess(t *testing.T) {
	text := strings.Repeat("x", 10<<10)
	write := func(n int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { io.WriteString(w, text[:n]) }
	}
	for name, tt := range map[string]struct {
		do   func(http.ResponseWriter)
		sent int // -1 for the 503
	}{
		"nothing":      {func(http.ResponseWriter) {}, -1},
		"a status":     {func(w http.ResponseWriter) { w.WriteHeader(201) }, -1},
		"no content":   {func(w http.ResponseWriter) { w.WriteHeader(204) }, -1},
		"some bytes":   {write(4), -1},
		"two writes":   {func(w http.ResponseWriter) { write(1000)(w); w.Write([]byte(text[:1000])) }, -1},
		"2 KiB":        {write(2048), -1},
		"2 KiB, 1":     {write(2049), 2049},
		"3 KiB":        {write(3072), 3072},
		"10 KiB":       {write(10 << 10), 10 << 10},
		"a flush":      {func(w http.ResponseWriter) { write(4)(w); w.(http.Flusher).Flush() }, 4},
		"flush, write": {func(w http.ResponseWriter) { write(4)(w); w.(http.Flusher).Flush(); write(5)(w) }, 9},
		"a length": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9")
			write(4)(w)
		}, -1},
		"a length, 3 KiB": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9999")
			write(3072)(w)
		}, 3072},
	} {
		for end, after := range map[string]func(){
			"returns": func() {},
			"aborts":  func() { panic(http.ErrAbortHandler) },
			"hangs":   func() { time.Sleep(time.Second) },
		} {
			if end != "returns" && name != "some bytes" && name != "3 KiB" {
				continue // a second of waiting for nothing new
			}
			t.Run(name+", "+end, func(t *testing.T) {
				h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tt.do(w)
					<-r.Context().Done()
					after()
				}), timeout.Config{Total: fairLimit, Grace: shortGrace})
				protocols(t, h, func(t *testing.T, get func() (*http.Response, string, error)) {
					res, body, err := get()
					switch {
					case res == nil:
						t.Fatal(err)
					case tt.sent < 0:
						if err != nil || res.StatusCode != 503 || !strings.HasPrefix(body, "The request timed out") {
							t.Errorf("%v, %q, %v", res, body, err)
						}
					case res.StatusCode != 200 || len(body) != tt.sent || err == nil:
						t.Errorf("%v, %d bytes, %v", res, len(body), err)
					}
				})
			})
		}
	}
}

// Guarantee 3, for clients to which the end of the connection is that of the response.
func TestCutIsNoEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		proto, encoding string
		tls             bool
		length          string
	}{
		"HTTP/1.0":                         {"1.0", "", false, ""},
		"HTTP/1.0 over TLS":                {"1.0", "", true, ""},
		"HTTP/1.0, with an invalid length": {"1.0", "", false, "many"},
		"without an encoding":              {"1.1", "identity", false, ""},
	} {
		t.Run(name, func(t *testing.T) { // with real sockets, of which one that is cut is reset
			t.Parallel()
			s := httptest.NewUnstartedServer(limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.encoding != "" {
					w.Header().Set("Transfer-Encoding", tt.encoding)
				}
				if tt.length != "" {
					w.Header().Set("Content-Length", tt.length)
				}
				io.WriteString(w, strings.Repeat("x", 3<<10))
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}), timeout.Config{Total: time.Second}))
			s.Config.ErrorLog = log.New(io.Discard, "", 0) // net/http complains of the length
			var conn net.Conn
			var err error
			if tt.tls {
				s.StartTLS()
				conn, err = tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			} else {
				s.Start()
				conn, err = net.Dial("tcp", s.Listener.Addr().String())
			}
			defer s.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET / HTTP/%s\r\nHost: x\r\n\r\n", tt.proto)
			b, err := io.ReadAll(conn)
			if err == nil {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
}

// Guarantee 3: a handler whose limit is longer than the server's WriteTimeout is answered for all
// the same, as is one that has let a write deadline of its own pass.
func TestAnswerAfterAWriteDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		server time.Duration
		own    func(*http.ResponseController) error
	}{
		"of the server": {shortLimit / 4, func(*http.ResponseController) error { return nil }},
		"of its own": {0, func(c *http.ResponseController) error {
			return c.SetWriteDeadline(time.Now().Add(shortLimit / 4))
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := tt.own(http.NewResponseController(w)); err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
			}), timeout.Config{Total: fairLimit}))
			s.Config.WriteTimeout = tt.server
			simnet.Start(s)
			t.Cleanup(s.Close)
			for range 2 { // on one connection
				res, body, err := get(t, s)
				if err != nil || res.StatusCode != 503 {
					t.Errorf("%v, %q, %v", res, body, err)
				}
			}
		})
	}
}
