package httptimeout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Guarantees 1 and 2, with the context of the request at each end, on both sides of the instant at which a
// limit falls due. A deadline is a limit (SPEC 3.12), and so is one of an enclosing execution.
func TestRequestContext(t *testing.T) {
	own := errors.New("of the caller")
	const idle = time.Second
	for name, tt := range map[string]struct {
		end    func(ctx context.Context) (context.Context, context.CancelFunc)
		runs   time.Duration // how long the handler does, whatever it is told
		status int
		body   string
		cause  func(error) bool
	}{
		"cancelled before": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(own)
				return ctx, func() {}
			},
			0, 200, "answer", func(err error) bool { return err == own },
		},
		"cancelled meanwhile": {cancelAfter(idle/2, own), idle - 1, 200, "answer", func(err error) bool { return err == own }},
		"cancelled, and the handler is silent": {
			cancelAfter(idle/2, own), idle, 503, "The request timed out: there was no progress for 1 s.\n", func(err error) bool { return err == own },
		},
		"just before its deadline": {deadlineAfter(idle / 2), idle/2 - 1, 200, "answer", func(err error) bool { return err == nil }},
		"a deadline":               {deadlineAfter(idle / 2), idle / 2, 503, "The request timed out after 0.5 s.\n", func(err error) bool { return errors.Is(err, timeout.ErrTotal) }},
		"a deadline that has passed": {
			deadlineAfter(-1), 0, 503, "The request was not started: its deadline had passed.\n", nil,
		},
		"an enclosing limit": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				inner := make(chan context.Context)
				go timeout.Run(ctx, func(ctx context.Context) error {
					inner <- ctx
					<-ctx.Done()
					return nil
				}, timeout.Config{Idle: idle / 2})
				return <-inner, func() {}
			},
			idle / 2, 503, "The request was stopped by the server.\n", func(err error) bool { return errors.Is(err, timeout.ErrIdle) },
		},
		"aborted by hand": {
			context.WithCancel,
			idle / 4, 503, "The request was stopped by the server.\n", func(err error) bool { return err == own },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called, cause := false, error(nil)
				h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					called = true
					if name == "aborted by hand" {
						timeout.FromContext(r.Context()).Abort(own)
					}
					time.Sleep(tt.runs)
					synctest.Wait()
					cause = context.Cause(r.Context())
					io.WriteString(w, "answer")
				}), timeout.Config{Idle: idle})
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
				if w.Code != tt.status || w.Body.String() != tt.body {
					t.Errorf("%d, %q", w.Code, w.Body)
				}
				if called != (tt.cause != nil) || called && !tt.cause(cause) {
					t.Errorf("called: %t, cause: %v", called, cause)
				}
			})
		})
	}
}

func cancelAfter(d time.Duration, cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(d, func() { cancel(cause) })
		return ctx, func() { cancel(nil) }
	}
}

func deadlineAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// A client that asks whether it shall send its body is not told to when it has been refused.
func TestExpectContinue(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"nothing":     func(http.ResponseWriter) {},
		"WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		"Write":       func(w http.ResponseWriter) { io.WriteString(w, "no") },
	} {
		bubble(t, name, func(t *testing.T) {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				io.ReadAll(r.Body)
			})
			request := "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody"
			var continued [2]bool
			for i, h := range []http.Handler{h, limited(h, timeout.Default())} {
				got := exchange(t, serve(t, h).Listener.Addr().String(), request, false)
				continued[i] = strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n")
			}
			if continued[0] != continued[1] || continued[0] != (name == "nothing") {
				t.Errorf("told to go on: %t without, %t with", continued[0], continued[1])
			}
		})
	}
}

// The server's own errors report that a client has gone, and never a timeout.
func TestClientGone(t *testing.T) {
	outcome, began := make(chan error, 1), make(chan struct{})
	s := serveReal(t, hooked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		gone := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
		<-r.Context().Done()
		if !<-gone {
			t.Error("CloseNotify told of no end")
		}
		if cause := context.Cause(r.Context()); cause != context.Canceled {
			t.Errorf("cause: %v", cause)
		}
		var err error
		for range 100 {
			if _, err = w.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		if opErr := (*net.OpError)(nil); !errors.As(err, &opErr) {
			t.Errorf("Write: %v", err)
		}
	}), timeout.Default(), timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { outcome <- s.Err }}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	if _, err := s.Client().Do(req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-outcome; err != nil {
		t.Errorf("outcome: %v", err)
	}
}

// Guarantee 4: the errors of a handler that may write no more say why.
func TestRefusals(t *testing.T) {
	own := errors.New("by an operator")
	for name, tt := range map[string]struct {
		stop func(r *http.Request)
		want string
		is   error
	}{
		"a limit":         {func(r *http.Request) { <-r.Context().Done() }, "http: Handler timeout", http.ErrHandlerTimeout},
		"by hand":         {func(r *http.Request) { timeout.FromContext(r.Context()).Abort(own) }, "httptimeout: the handler was stopped: by an operator", own},
		"it has returned": {nil, "httptimeout: the handler has returned", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				write := make(chan func() (int, error), 1)
				var late [2]error
				h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					write <- func() (int, error) { return w.Write([]byte("x")) }
					if tt.stop != nil {
						tt.stop(r)
						_, late[0] = w.Write([]byte("x"))
						_, late[1] = r.Body.Read(make([]byte, 1))
					}
				}), timeout.Config{Total: time.Second})
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("body")))
				if tt.stop == nil {
					_, late[0] = (<-write)()
					late[1] = late[0]
				}
				for _, err := range late {
					if err == nil || err.Error() != tt.want || tt.is != nil && !errors.Is(err, tt.is) {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}

// Guarantee 7: the temporary files of a form go when the handler has ended, however it ends.
func TestMultipartFilesAreRemoved(t *testing.T) {
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, _ := m.CreateFormFile("file", "name")
	part.Write(make([]byte, 1<<10))
	m.Close()
	var abandoned chan struct{}
	for name, after := range map[string]func(r *http.Request){
		"in time":   func(*http.Request) {},
		"panic":     func(*http.Request) { panic(http.ErrAbortHandler) },
		"stopped":   func(r *http.Request) { <-r.Context().Done() },
		"abandoned": func(*http.Request) { <-abandoned },
	} {
		bubble(t, name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			t.Setenv("TMP", dir) // on Windows
			count := func() int {
				files, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				return len(files)
			}
			ended := make(chan struct{})
			abandoned = make(chan struct{})
			inner := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if err := r.ParseMultipartForm(0); err != nil || count() != 1 {
					t.Errorf("%v, %d files", err, count())
				}
				after(r)
			})
			h := hooked(inner, timeout.Config{Total: fairLimit, Grace: shortGrace}, timeout.Hooks{
				Finished: func(_ context.Context, s timeout.Snapshot) {
					if name != "abandoned" {
						close(ended)
					}
				},
				Abandoned: func(context.Context, timeout.Snapshot) { close(abandoned) },
				Returned:  func(context.Context, timeout.Snapshot) { close(ended) },
			})
			s := serve(t, h)
			res, err := s.Client().Post(s.URL, m.FormDataContentType(), bytes.NewReader(form.Bytes()))
			if err == nil {
				res.Body.Close()
			}
			if name != "panic" { // of which no hook is told after the handler's defers
				<-ended
			}
			s.Close() // waits for the handler where it is not abandoned
			if n := count(); n != 0 {
				t.Errorf("%d files are left", n)
			}
		})
	}
}
