package httptimeout_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const compareLimit = time.Second

// lock is the row in which net/http waits for a lock that a read holds under TimeoutHandler, which would stop the time of a bubble.
const lock = "reads an upload that stalls: the response"

// A site serves one handler under limits, for one case of the comparison.
type site struct {
	t     *testing.T
	wrap  func(http.Handler) http.Handler
	log   *syncBuffer
	told  chan string // what the supervision tells of an abandoned handler
	limit time.Duration
	start func(*httptest.Server)
	dial  func(addr string) (net.Conn, error)
	long  time.Duration // for what does not happen at all
}

func (s site) serve(h http.HandlerFunc) *httptest.Server {
	return s.serveWith(h, func(*httptest.Server) {})
}

func (s site) serveWith(h http.HandlerFunc, set func(*httptest.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(s.wrap(h))
	server.Config.ErrorLog = log.New(s.log, "", 0)
	set(server)
	s.start(server)
	s.t.Cleanup(server.Close)
	return server
}

// get is what the client of a GET request sees.
func (s site) get(h http.HandlerFunc) string {
	return s.send(s.serve(h), http.MethodGet, nil)
}

func (s site) send(server *httptest.Server, method string, body io.Reader) string {
	req, _ := http.NewRequestWithContext(s.t.Context(), method, server.URL, body)
	return describe(server.Client().Do(req))
}

func describe(res *http.Response, err error) string {
	if err != nil {
		return "no response"
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	got := fmt.Sprint(res.StatusCode)
	if res.StatusCode/100 == 2 {
		got += fmt.Sprintf(", %d bytes", len(body))
	}
	if res.Header.Get("Retry-After") != "" {
		got += ", Retry-After"
	}
	if err != nil {
		got += ", cut"
	}
	return got
}

// by is a request by hand, of which more may be missing.
func (s site) by(server *httptest.Server, request string, closeWrite bool) string {
	got := exchange(s.t, server.Listener.Addr().String(), request, closeWrite)
	return describe(http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil))
}

// within reports what happened first: the event, or a time that is long for it.
func (s site) within(event <-chan string) string {
	select {
	case what := <-event:
		return what
	case <-time.After(s.long):
		return "goes on"
	}
}

// The table in docs/http.md: each case runs with a limit of 1 s, in http.TimeoutHandler and as the
// idle limit of New.
func TestComparisonWithTimeoutHandler(t *testing.T) {
	doc, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, tt := range []struct {
		name      string
		run       func(s site) string
		std, ours string
	}{
		{"returns in time", func(s site) string {
			return s.get(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
		}, "200, 4 bytes", "200, 4 bytes"},
		{"writes nothing, and hangs", func(s site) string {
			return s.get(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, "503", "503, Retry-After"},
		{"writes 4 bytes, and hangs", func(s site) string {
			return s.get(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "half")
				<-r.Context().Done()
			})
		}, "503", "503, Retry-After"},
		{"writes 3 KiB, and hangs", func(s site) string {
			return s.get(func(w http.ResponseWriter, r *http.Request) {
				w.Write(make([]byte, 3<<10))
				<-r.Context().Done()
			})
		}, "503", "200, 3072 bytes, cut"},
		{"streams for longer than the limit", func(s site) string {
			return s.get(func(w http.ResponseWriter, _ *http.Request) {
				for range 10 {
					time.Sleep(s.limit / 5)
					io.WriteString(w, "x")
					http.NewResponseController(w).Flush()
				}
			})
		}, "503", "200, 10 bytes"},
		{"reads an upload that stalls: the response", func(s site) string {
			server := s.serve(func(_ http.ResponseWriter, r *http.Request) { io.ReadAll(r.Body) })
			response := make(chan string, 1)
			go func() {
				conn, err := s.dial(server.Listener.Addr().String())
				if err != nil {
					response <- err.Error()
					return
				}
				s.t.Cleanup(func() { conn.Close() })
				go io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1234")
				response <- describe(http.ReadResponse(bufio.NewReader(conn), nil))
			}()
			return strings.Replace(s.within(response), "goes on", "none while the client waits", 1)
		}, "none while the client waits", "503, Retry-After"},
		{"writes 32 MiB to a client that takes nothing", func(s site) string {
			wrote, big := make(chan string, 1), make([]byte, 32<<20)
			server := s.serve(func(w http.ResponseWriter, _ *http.Request) {
				if _, err := w.Write(big); err != nil {
					wrote <- "the Write fails at the limit"
				} else {
					wrote <- "all of it is kept in memory"
				}
			})
			conn, err := s.dial(server.Listener.Addr().String())
			if err != nil {
				return err.Error()
			}
			s.t.Cleanup(func() { conn.Close() })
			go io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			return s.within(wrote)
		}, "all of it is kept in memory", "the Write fails at the limit"},
		{"ignores its context for ever: who is told", func(s site) string {
			ended := make(chan struct{})
			defer close(ended)
			s.get(func(http.ResponseWriter, *http.Request) { <-ended })
			select {
			case what := <-s.told:
				return what
			case <-time.After(s.long):
				return "nobody"
			}
		}, "nobody", "the hook `Abandoned`"},
		{"panics after the limit", func(s site) string {
			panicked := make(chan struct{})
			got := s.get(func(_ http.ResponseWriter, r *http.Request) {
				defer close(panicked)
				<-r.Context().Done()
				panic("oops")
			})
			<-panicked
			if strings.Contains(s.log.String(), "oops") {
				return got + ", logged"
			}
			return got
		}, "503", "503, Retry-After, logged"},
		{"the client closes its half and waits", func(s site) string {
			return s.by(s.serve(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				io.WriteString(w, "fine")
			}), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", true)
		}, "503", "200, 4 bytes"},
		{"the server's ReadTimeout passes, and the handler answers 408", func(s site) string {
			return s.by(s.serveWith(func(w http.ResponseWriter, r *http.Request) {
				io.ReadAll(r.Body)
				<-r.Context().Done()
				w.WriteHeader(http.StatusRequestTimeout)
			}, func(s *httptest.Server) {
				s.Config.ReadTimeout, s.Config.ReadHeaderTimeout = compareLimit/2, time.Hour
			}), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", false)
		}, "503", "408"},
		{"hijacks its connection", func(s site) string {
			return s.get(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					http.Error(w, err.Error(), http.StatusNotImplemented)
					return
				}
				defer conn.Close()
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
			})
		}, "501", "200, 4 bytes"},
		{"sends a file", func(s site) string {
			can := make(chan string, 1)
			s.get(func(w http.ResponseWriter, _ *http.Request) {
				_, ok := w.(io.ReaderFrom)
				can <- map[bool]string{true: "an io.ReaderFrom: sendfile", false: "through memory"}[ok]
			})
			return <-can
		}, "through memory", "an io.ReaderFrom: sendfile"},
		{"uses its ResponseController", func(s site) string {
			can := make(chan string, 1)
			s.get(func(w http.ResponseWriter, _ *http.Request) {
				rc, t, failed := http.NewResponseController(w), time.Now().Add(time.Hour), 0
				for _, err := range []error{rc.SetReadDeadline(t), rc.SetWriteDeadline(t), rc.EnableFullDuplex(), rc.Flush()} {
					if err != nil {
						failed++
					}
				}
				can <- map[int]string{0: "all methods work", 4: "no method works"}[failed]
			})
			return <-can
		}, "no method works", "all methods work"},
		{"its context's cause", func(s site) string {
			cause := make(chan error, 1)
			s.get(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				cause <- context.Cause(r.Context())
			})
			return fmt.Sprintf("`%T`", <-cause)
		}, "`context.deadlineExceededError`", "`*timeout.Error`"},
	} {
		row := fmt.Sprintf("| %s | %s | %s |\n", tt.name, tt.std, tt.ours)
		if rows++; !bytes.Contains(doc, []byte(row)) {
			t.Errorf("docs/http.md has no row %s", row)
		}
		std := func(t *testing.T, start func(*httptest.Server), dial func(string) (net.Conn, error), limit, long time.Duration) {
			wrap := func(h http.Handler) http.Handler { return http.TimeoutHandler(h, limit, "") }
			s := site{t, wrap, new(syncBuffer), make(chan string, 1), limit, start, dial, long}
			if got := tt.run(s); got != tt.std {
				t.Errorf("%q, want %q", got, tt.std)
			}
		}
		if tt.name == lock {
			t.Run(tt.name+"/TimeoutHandler", func(t *testing.T) {
				t.Parallel()
				std(t, (*httptest.Server).Start, func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }, compareLimit/10, compareLimit/2)
			})
		} else {
			bubble(t, tt.name+"/TimeoutHandler", func(t *testing.T) { std(t, simnet.Start, simnet.Dial, compareLimit, 100*compareLimit) })
		}
		bubble(t, tt.name+"/New", func(t *testing.T) {
			s := site{t, nil, new(syncBuffer), make(chan string, 1), compareLimit, simnet.Start, simnet.Dial, 100 * compareLimit}
			s.wrap = func(h http.Handler) http.Handler {
				return hooked(h, timeout.Config{Idle: compareLimit, Grace: shortGrace}, timeout.Hooks{
					Abandoned: func(context.Context, timeout.Snapshot) { s.told <- "the hook `Abandoned`" },
				})
			}
			if got := tt.run(s); got != tt.ours {
				t.Errorf("%q, want %q", got, tt.ours)
			}
		})
	}
	if got := bytes.Count(doc[bytes.Index(doc, []byte("## Compared")):], []byte("\n| ")) - 1; got != rows {
		t.Errorf("the table in docs/http.md has %d rows, and the test %d", got, rows)
	}
}
