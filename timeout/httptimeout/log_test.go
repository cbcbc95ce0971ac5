package httptimeout_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// logOf is what the server logs while it serves one request, and what the client gets.
func logOf(t *testing.T, h http.Handler) (logged, got string) {
	t.Helper()
	var log1 syncBuffer
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(&log1, "", 0)
	simnet.Start(s)
	got = exchange(t, s.Listener.Addr().String(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)
	s.Close()
	return log1.String(), got
}

// The log of a handler's mistakes is that of net/http, and names the line that made them.
func TestMistakesNameTheHandler(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"twice": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.WriteHeader(202)
		},
		"after a write": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "x")
			http.Error(w, "no", 500)
		},
		"103 after a flush": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(103)
		},
		"hijacked": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			w.WriteHeader(200)
			if _, err := w.Write([]byte("x")); err != http.ErrHijacked {
				t.Error(err)
			}
			if _, err := w.Write(nil); err != http.ErrHijacked {
				t.Error(err)
			}
		},
		"not a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "one")
			io.WriteString(w, "x")
		},
	} {
		bubble(t, name, func(t *testing.T) {
			want, wantGot := logOf(t, h)
			logged, got := logOf(t, limited(h, timeout.Default()))
			date := regexp.MustCompile(`Date: .*`)
			if logged != want || date.ReplaceAllString(got, "") != date.ReplaceAllString(wantGot, "") {
				t.Errorf("without: %q, %q\nwith:    %q, %q", want, wantGot, logged, got)
			}
			if name != "not a length" && !strings.Contains(want, "log_test.go") {
				t.Errorf("logged %q", want)
			}
		})
	}
}

// Guarantee 5, for a panic in the grace: the client gets the answer that was due where no part of the
// response was out, and the server's log has the panic.
func TestPanicInTheGrace(t *testing.T) {
	for name, tt := range map[string]struct {
		value  any
		logged string
	}{
		"a value":        {"oops", "panic serving"},
		"an error":       {errors.New("oops"), "panic serving"},
		"of an enclosed": {nil, "panic serving"},
		"an abort":       {http.ErrAbortHandler, ""},
	} {
		bubble(t, name, func(t *testing.T) {
			for _, size := range []int{0, 5, 3 << 10} {
				h := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if size > 0 {
						fmt.Fprint(w, strings.Repeat("x", size))
					}
					<-r.Context().Done()
					panicWith(tt.value)
				}), timeout.Config{Total: fairLimit})
				logged, got := logOf(t, h)
				if tt.logged == "" && logged != "" || !strings.Contains(logged, tt.logged) {
					t.Errorf("%d bytes: logged %q", size, logged)
				}
				if tt.logged != "" && !strings.Contains(logged, "oops") {
					t.Errorf("%d bytes: without the panic: %q", size, logged)
				}
				if size == 0 && tt.logged != "" && !strings.Contains(logged, "panicWith") {
					t.Errorf("without the stack: %q", logged)
				}
				res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
				if err != nil {
					t.Errorf("%d bytes: %q: %v", size, got, err)
					continue
				}
				body, err := io.ReadAll(res.Body)
				if whole := size <= 2<<10; res.StatusCode != map[bool]int{true: 503, false: 200}[whole] || (err == nil) != whole || !whole && len(body) != size {
					t.Errorf("%d bytes: %v, %d bytes, %v", size, res, len(body), err)
				}
			}
		})
	}
}

// panicWith panics with v, or, where that is nil, in an execution within the handler's.
func panicWith(v any) {
	if v == nil {
		timeout.Run(context.Background(), func(context.Context) error { panic("oops") })
	}
	panic(v)
}
