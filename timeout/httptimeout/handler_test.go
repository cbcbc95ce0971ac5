package httptimeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

const (
	shortLimit = 300 * time.Millisecond
	shortGrace = 100 * time.Millisecond
	fairLimit  = 2500 * time.Millisecond // for a handler that has something to do first
)

func limited(h http.Handler, limits timeout.Config) *httptimeout.Handler {
	return &httptimeout.Handler{Handler: h, Limits: &limits}
}

// hooked is limited with hooks.
func hooked(h http.Handler, limits timeout.Config, hooks timeout.Hooks) *httptimeout.Handler {
	return &httptimeout.Handler{Handler: h, Limits: &limits, Settings: []timeout.Setting{timeout.WithHooks(hooks)}}
}

// serve is a server whose log stays empty.
func serve(t *testing.T, h http.Handler) *httptest.Server { return serveBy(t, h, simnet.Start) }

// serveReal has real sockets.
func serveReal(t *testing.T, h http.Handler) *httptest.Server {
	return serveBy(t, h, (*httptest.Server).Start)
}

func serveBy(t *testing.T, h http.Handler, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	var logged syncBuffer
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(&logged, "", 0)
	start(s)
	t.Cleanup(func() {
		s.Close()
		if text := logged.String(); text != "" {
			t.Errorf("the server has logged %q", text)
		}
	})
	return s
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Each action of the handler is a heartbeat: limit − 1 ns after the last it lives, at the
// limit it is stopped. The recorder stands for the server, whose time cannot be faked.
func TestSignsOfLife(t *testing.T) {
	const idle = time.Second
	body := func() io.Reader { return struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 100))} }
	for name, beat := range map[string]func(w http.ResponseWriter, r *http.Request){
		"Write":       func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) },
		"WriteString": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") },
		"WriteHeader": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
		"ReadFrom":    func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("x")) },
		"Flush":       func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"controller":  func(w http.ResponseWriter, _ *http.Request) { http.NewResponseController(w).Flush() },
		"body":        func(_ http.ResponseWriter, r *http.Request) { r.Body.Read(make([]byte, 1)) },
		"Beat":        func(_ http.ResponseWriter, r *http.Request) { heartbeat.Beat(r.Context()) },
	} {
		for _, gap := range []time.Duration{idle - 1, idle} {
			t.Run(fmt.Sprint(name, " ", gap), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var cause error
					h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						for range 3 {
							time.Sleep(gap)
							beat(w, r)
						}
						cause = context.Cause(r.Context())
					}), timeout.Config{Idle: idle})
					defer func() {
						_ = recover() // what was started is cut
						if stopped := errors.Is(cause, timeout.ErrIdle); stopped != (gap >= idle) {
							t.Errorf("with gaps of %v the cause is %v", gap, cause)
						}
					}()
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", body()))
				})
			})
		}
	}
}

// Before anything is out, the answer to a stop is a 503 that says when to come back.
func TestUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		limits timeout.Config
		text   string
	}{
		"idle":  {timeout.Config{Idle: shortLimit}, "The request timed out: there was no progress for 0.3 s.\n"},
		"total": {timeout.Config{Total: shortLimit}, "The request timed out after 0.3 s.\n"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "video/mp4")
				w.Header().Set("X-Secret", "of the handler")
				w.WriteHeader(http.StatusEarlyHints)
				<-r.Context().Done()
				if _, err := w.Write([]byte("too late")); !errors.Is(err, http.ErrHandlerTimeout) {
					t.Errorf("Write after the stop: %v", err)
				}
				w.WriteHeader(http.StatusTeapot)
			}), tt.limits)
			res, body, err := get(t, serve(t, h))
			if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "10" || body != tt.text {
				t.Errorf("%v, %v, %q", res, err, body)
			}
			if got := res.Header.Get("X-Secret") + res.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("header %v", res.Header)
			}
		})
	}
}

// A handler that returns in time has its status, header, body and trailers, as without us.
func TestUntouched(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"header alone": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X", "y"); w.Header().Del("Outer") },
		"status":       func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
		"length":       func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"trailers": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Sum")
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			w.Header().Set("Sum", "1")
			w.Header().Set(http.TrailerPrefix+"More", "2")
			w.Header().Set("Late", "lost")
		},
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"no bytes":    func(w http.ResponseWriter, _ *http.Request) { w.Write(nil); w.Header().Set("Late", "lost") },
		"header late": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); w.Header().Set("Late", "lost") },
		"2 KiB":       func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 2<<10)) },
		"2 KiB, 1":    func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 2<<10)); w.Write(make([]byte, 1)) },
		"3 KiB":       func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 3<<10)) },
		"trailer alone": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Sum")
			io.WriteString(w, "x")
			w.Header().Set("Sum", "1")
		},
		"trailer deleted": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Sum, More")
			w.Header().Set("Sum", "0")
			io.WriteString(w, "x")
			w.Header().Del("Sum")
			w.Header().Set("More", "2")
		},
		"no body allowed": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(304)
			if _, err := w.Write([]byte("x")); err != http.ErrBodyNotAllowed {
				t.Error(err)
			}
		},
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			io.WriteString(w, "12")
			if _, err := io.WriteString(w, "3"); err != http.ErrContentLength {
				t.Error(err)
			}
		},
		"invalid status": func(w http.ResponseWriter, _ *http.Request) {
			defer func() { fmt.Fprint(w, recover()) }()
			w.WriteHeader(99)
		},
		"twice": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(103); w.WriteHeader(201) },
	}
	for name, h := range handlers {
		bubble(t, name, func(t *testing.T) {
			var got [2]string
			for i, h := range []http.Handler{h, limited(h, timeout.Default())} {
				outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Outer", "1")
					h.ServeHTTP(w, r)
				})
				res, body, err := get(t, serve(t, outer))
				if err != nil {
					t.Fatal(err)
				}
				res.Header.Del("Date")
				got[i] = fmt.Sprint(res.Status, res.Header, res.Trailer, res.ContentLength, body)
			}
			if got[0] != got[1] {
				t.Errorf("without: %s\nwith: %s", got[0], got[1])
			}
		})
	}
}

// An abandoned handler can go on with everything it has, for ever, and races with nobody.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done sync.WaitGroup
		h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer done.Done()
			for begun, i := time.Now(), 0; time.Since(begun) < shortLimit+shortGrace+time.Second; i++ {
				w.Header().Set("X", fmt.Sprint(i))
				if i%2 == 0 && r.Context().Err() != nil { // before that, nothing is to be out
					w.WriteHeader(200)
					w.Write([]byte("x"))
					w.(http.Flusher).Flush()
					http.NewResponseController(w).SetWriteDeadline(time.Time{})
					if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
						t.Error("the connection of another request was hijacked")
					}
				}
				r.Body.Read(make([]byte, 1))
				time.Sleep(time.Millisecond)
			}
		}), timeout.Config{Total: shortLimit, Grace: shortGrace})
		s := serve(t, h)
		for range 3 { // on one connection, as far as that lives
			done.Add(1)
			res, body, err := get(t, s)
			if err != nil || res.StatusCode != 503 || !strings.HasPrefix(body, "The request timed out") {
				t.Errorf("%v, %q, %v", res, body, err)
			}
		}
		done.Wait()
	})
}

// Panics, and what net/http does with them, are the handler's.
func TestPanics(t *testing.T) {
	own := errors.New("mine")
	for name, tt := range map[string]struct {
		do   func()
		want func(v any) bool
	}{
		"abort":  {func() { panic(http.ErrAbortHandler) }, func(v any) bool { return v == http.ErrAbortHandler }},
		"error":  {func() { panic(own) }, func(v any) bool { return v == own }},
		"value":  {func() { panic("text") }, func(v any) bool { return strings.Contains(fmt.Sprint(v), "text") }},
		"Goexit": {runtime.Goexit, func(v any) bool { return v == http.ErrAbortHandler }},
	} {
		for _, settings := range [][]timeout.Setting{nil, {timeout.WithRecover()}} {
			bubble(t, fmt.Sprintf("%s/%d settings", name, len(settings)), func(t *testing.T) {
				h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { tt.do() }), timeout.Default())
				h.Settings = settings
				defer func() {
					if v := recover(); !tt.want(v) {
						t.Errorf("panic with %v", v)
					}
				}()
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			})
		}
	}
}

// Guarantee 3: a client learns that its request was refused, and the log of the server why.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }), timeout.Config{})
		h.Settings = []timeout.Setting{timeout.Refuse(errors.New("limits.json: no such key"))}
		logged, got := logOf(t, h)
		if !strings.HasPrefix(got, "HTTP/1.1 500 ") || strings.Contains(got, "limits.json") || !strings.Contains(logged, "limits.json: no such key") {
			t.Errorf("the client got %q, the log %q", got, logged)
		}
	})
}

// The optional interfaces are those that the server's ResponseWriter has.
func TestInterfaces(t *testing.T) {
	type names struct{ flush, hijack, push bool }
	check := func(w http.ResponseWriter) (n names) {
		_, n.flush = w.(http.Flusher)
		_, n.hijack = w.(http.Hijacker)
		_, n.push = w.(http.Pusher)
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("no ReaderFrom")
		}
		return n
	}
	seen := make(chan names, 1)
	h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- check(w) }), timeout.Default())
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = http2
		s.StartTLS() // for the systems' own sockets
		res, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		s.Close()
		if got, want := <-seen, (names{true, !http2, http2}); got != want {
			t.Errorf("HTTP/2 %v: %+v, want %+v", http2, got, want)
		}
	}
	plain := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	h.ServeHTTP(plain, httptest.NewRequest("GET", "/", nil))
	if got := <-seen; got != (names{}) {
		t.Errorf("%+v, want none", got)
	}
}

// Files go out whole, in pieces, through one LimitedReader too; and a source that is no file
// and never ends can be taken away from a handler.
func TestReadFrom(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16+1)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]int{-1: len(content), 0: 0, 1<<20 - 1: 1<<20 - 1, 1 << 20: 1 << 20, 1<<20 + 1: 1<<20 + 1, 1 << 40: len(content)} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f, err := os.Open(name)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				limited := &io.LimitedReader{R: f, N: limit}
				var src io.Reader = f
				if limit >= 0 {
					src = limited
				}
				n, err := io.Copy(w, src)
				if n != int64(want) || err != nil || (limit >= 0 && limited.N != limit-n) {
					t.Errorf("%d, %v, %d are left", n, err, limited.N)
				}
				if beats := heartbeat.FromContext(r.Context()).Count(); beats < uint64(want>>20) {
					t.Errorf("%d beats", beats)
				}
			}), timeout.Default())
			_, body, err := get(t, serveReal(t, h))
			if err != nil || body != string(content[:want]) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		})
	}
	for name, pipe := range map[string]func() (io.Reader, io.Closer){
		"endless":      func() (io.Reader, io.Closer) { return io.Pipe() },
		"endless file": func() (io.Reader, io.Closer) { r, w, _ := os.Pipe(); return r, w },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe()
			h := limited(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.Copy(rw, r) }),
				timeout.Config{Idle: shortLimit, Grace: shortGrace})
			if res, _, err := get(t, serveReal(t, h)); err != nil || res.StatusCode != 503 {
				t.Errorf("%v, %v", res, err)
			}
			w.Close()
		})
	}
}
