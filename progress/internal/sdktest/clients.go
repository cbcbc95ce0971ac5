package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// timedOut checks that err is the error of a request that timed out, as SPEC 8.2 describes it, and returns the
// *timeout.Error in it.
func timedOut(t testing.TB, sdk SDK, err error, method string) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if sdk.Code(err) != request.CodeTimeout || !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v with code %d: want a *timeout.Error of %s with code -32001, got %+v", err, sdk.Code(err), method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v: want context.DeadlineExceeded, and not context.Canceled", err)
	}
	return e
}

// clientLimits tests SPEC 8.1, 8.2: the limits of a request behave as in the TypeScript SDK, without its errors. The
// tests of package request cover every limit to the nanosecond.
func clientLimits(t *testing.T, sdk SDK) {
	reset := func(l request.Limits) request.Limits { l.ResetOnProgress = true; return l }
	second := request.Limits{Timeout: s}
	for _, tc := range []struct {
		name     string
		limits   request.Limits
		progress []time.Duration
		answer   time.Duration
		fails    time.Duration // when the request must time out; 0 means that it must not
		kind     timeout.Kind
		message  string
	}{
		{name: "no reset", limits: second, progress: []time.Duration{800 * ms}, answer: 1600 * ms, fails: s, kind: timeout.ErrIdle, message: `Request timed out: no answer for 1s`},
		{name: "reset", limits: reset(second), progress: []time.Duration{800 * ms}, answer: 1600 * ms},
		{name: "silence", limits: reset(second), progress: []time.Duration{800 * ms}, answer: time.Hour, fails: 1800 * ms, kind: timeout.ErrIdle,
			message: `Request timed out: no progress for 1s, 1.8s after the start`},
		{name: "cap with progress", limits: reset(request.Limits{Timeout: 100 * ms, MaxTotal: 150 * ms}), progress: []time.Duration{80 * ms, 160 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.ErrTotal, message: `Maximum total timeout exceeded: 150ms`},
	} {
		for _, version := range []string{Old, New} {
			t.Run(tc.name+" "+version, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					sc := new(Script)
					c := dial(t, sdk, ClientConfig{Limited: true, PerMethod: map[string]request.Limits{"tools/call": tc.limits}, Version: version}, sc, func(r *Asked) {
						if r.Method != "tools/call" {
							return
						}
						for i, at := range tc.progress {
							if r.until(at) {
								r.progress(float64(i+1), "")
							}
						}
						if r.until(tc.answer) {
							r.answer(`{"content":[{"type":"text","text":"done"}]}`)
						}
					})
					defer sc.close(c)
					begun := time.Now()
					res, err := c.Call(t.Context(), "work", nil, nil)
					took := time.Since(begun)
					time.Sleep(s)
					if tc.fails == 0 {
						if err != nil || res.Texts[0] != "done" || took != tc.answer {
							t.Errorf("%v, %v after %v", res, err, took)
						}
						return
					}
					e := timedOut(t, sdk, err, "tools/call")
					if text := strings.TrimPrefix(err.Error(), "transport error: "); text != `calling "tools/call": `+tc.message || e.Kind != tc.kind || e.Elapsed != tc.fails || took != tc.fails || e.Abandoned {
						t.Errorf("%q after %v: %+v", text, took, e)
					}
					if sc.count("notifications/cancelled of") != 1 {
						t.Errorf("the request was not cancelled at the server: %q", sc.lines())
					}
				})
			})
		}
	}
}

// whichLimits tests SPEC 8.4: a request has the limits of WithLimits, or else of its method, or else the defaults. Each
// request that times out is cancelled by its own id.
func whichLimits(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		sc := new(Script)
		c := dial(t, sdk, ClientConfig{Limited: true, Version: Old, Limits: request.Limits{Timeout: 4 * s}, PerMethod: map[string]request.Limits{
			"tools/call": {Timeout: s}, "tools/*": {Timeout: 2 * s}, "resources/*": {MaxTotal: 3 * s}, "initialize": {},
		}}, sc, func(*Asked) {})
		defer sc.close(c)
		for _, tc := range []struct {
			method string
			ctx    context.Context
			want   time.Duration
		}{
			{"tools/call", t.Context(), s}, {"tools/list", t.Context(), 2 * s}, {"resources/read", t.Context(), 3 * s}, {"ping", t.Context(), 4 * s},
			{"tools/call", request.WithLimits(t.Context(), request.Limits{MaxTotal: 5 * s}), 5 * s},
		} {
			begun := time.Now()
			err := ask(c, tc.ctx, tc.method)
			if timedOut(t, sdk, err, tc.method); time.Since(begun) != tc.want {
				t.Errorf("%s: after %v, want %v", tc.method, time.Since(begun), tc.want)
			}
		}
		time.Sleep(s)
		cancelled, ids := map[string]bool{}, map[string]bool{}
		for _, line := range sc.lines() {
			if id, ok := strings.CutPrefix(line, "notifications/cancelled of "); ok {
				cancelled[id] = true
			} else if method, id, _ := strings.Cut(line, " "); id != "" && method != "initialize" {
				ids[id] = true
			}
		}
		if d := cmp.Diff(ids, cancelled); d != "" || len(ids) != 5 {
			t.Error(d)
		}
	})
}

// ask sends a request of any method, and returns its error.
func ask(c Client, ctx context.Context, method string) (err error) {
	if method == "tools/call" {
		_, err = c.Call(ctx, "work", nil, nil)
	} else {
		_, err = c.Request(ctx, method)
	}
	return err
}

// givenUp tests SPEC 3.11, 3.12, 8.6: a cancellation by the caller is an abort, and a deadline of the caller is a
// timeout. The notifications/cancelled has the reason and, for a timeout, the limit.
func givenUp(t *testing.T, sdk SDK) {
	stop := errors.New("the user pressed Stop")
	after := func(cause error) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(s, func() { cancel(cause) })
			return ctx, func() { cancel(nil) }
		}
	}
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 250*ms)
	}
	hour := request.Limits{Timeout: time.Hour}
	for _, tc := range []struct {
		name   string
		limits request.Limits
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		reason string
		is     error
		kind   timeout.Kind
	}{
		{"progress", request.Limits{Timeout: time.Minute, ResetOnProgress: true}, nil, "timeout of 60 s without progress", context.DeadlineExceeded, timeout.ErrIdle},
		{"answer", request.Limits{Timeout: 1500 * ms}, nil, "timeout of 1.5 s without an answer", context.DeadlineExceeded, timeout.ErrIdle},
		{"total", request.Limits{Timeout: time.Hour, MaxTotal: 30 * time.Minute}, nil, "timeout of 30 min in total", context.DeadlineExceeded, timeout.ErrTotal},
		{"deadline of the caller", hour, deadline, "timeout of 250 ms in total", context.DeadlineExceeded, timeout.ErrTotal},
		{"person", hour, after(stop), "cancelled: the user pressed Stop", stop, timeout.ErrAborted},
		{"cause", hour, after(io.ErrNoProgress), "cancelled: " + io.ErrNoProgress.Error(), io.ErrNoProgress, timeout.ErrAborted},
		{"caller", hour, after(nil), "cancelled by the client", context.Canceled, timeout.ErrAborted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sc := new(Script)
				c := dial(t, sdk, ClientConfig{Limited: true, Version: Old, Limits: tc.limits}, sc, func(*Asked) {})
				defer sc.close(c)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tc.ctx != nil {
					ctx, cancel = tc.ctx(ctx)
				}
				defer cancel()
				_, err := c.Call(ctx, "work", nil, nil)
				var e *timeout.Error
				if !errors.Is(err, tc.is) || !errors.As(err, &e) || e.Kind != tc.kind || errors.Is(err, context.Canceled) != (tc.kind == timeout.ErrAborted) {
					t.Errorf("%v: %+v", err, e)
				}
				time.Sleep(s)
				var reasons []any
				for _, m := range sc.all() {
					if m.Method == "notifications/cancelled" {
						reasons = append(reasons, m.Params["reason"])
					}
				}
				if d := cmp.Diff([]any{tc.reason}, reasons); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// A hearer records the progress that its client receives.
type hearer struct {
	mu  sync.Mutex
	all []string
}

func (h *hearer) note(_ context.Context, token any, value float64, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprint(token, " ", value, " ", message))
}

func (h *hearer) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.all...)
}

// ownToken tests SPEC 8.3: the progress handler is called as it is without Limit, with the caller's own token and the
// message, and not for requests without a token of the caller. The caller's params are not changed.
func ownToken(t *testing.T, sdk SDK) {
	for _, token := range []any{"mine", 7, nil} {
		for _, limited := range []bool{false, true} {
			t.Run(fmt.Sprint(token, " limited=", limited), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var h hearer
					sc := new(Script)
					c := dial(t, sdk, ClientConfig{Limited: limited, Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}, OnProgress: h.note}, sc, func(r *Asked) {
						for i := range 3 {
							time.Sleep(900 * ms)
							r.progress(float64(i+1), fmt.Sprint("step ", i+1))
						}
						r.answer(`{"content":[]}`)
					})
					defer sc.close(c)
					meta := map[string]any{"own": "kept"}
					if _, err := c.Call(t.Context(), "work", token, meta); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					var want []string
					for i := range 3 {
						if token != nil {
							want = append(want, fmt.Sprintf("%v %d step %[2]d", token, i+1))
						}
					}
					if d := cmp.Diff(want, h.list()); d != "" || meta["own"] != "kept" {
						t.Error(d, meta)
					}
				})
			})
		}
	}
}

// slowHandler tests SPEC 8.3: a slow handler of a notification delays no renewal of a limit. The handlers run in order,
// one after the other. A handler that panics or ends its goroutine stops no other handler.
func slowHandler(t *testing.T, sdk SDK) {
	for how, act := range map[string]func(first bool){
		"slow": func(bool) { time.Sleep(time.Hour) },
		"panic": func(first bool) {
			if first {
				panic("a handler panics")
			}
		},
		"goexit": func(first bool) {
			if first {
				runtime.Goexit()
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got []string
				running := 0
				slow := func(what string) {
					if running++; running != 1 {
						t.Error("two handlers run at once")
					}
					defer func() { running-- }()
					got = append(got, what)
					act(len(got) == 1)
				}
				var hooked []error
				sc := new(Script)
				c := dial(t, sdk, ClientConfig{Limited: true, Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true},
					OnProgress: func(_ context.Context, _ any, _ float64, message string) { slow(message) }, OnChanged: func() { slow("tools") },
					Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
						if s.Err != nil {
							hooked = append(hooked, s.Err)
						}
					}},
				}, sc, func(r *Asked) {
					sc.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					for i := range 20 {
						time.Sleep(900 * ms)
						r.progress(float64(i), fmt.Sprint(i))
					}
					r.answer(`{"content":[]}`)
				})
				begun := time.Now()
				if _, err := c.Call(t.Context(), "work", "mine", nil); err != nil || time.Since(begun) != 18*s {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if d := cmp.Diff(strings.Fields("tools 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"), got); d != "" {
					t.Error(d)
				}
				var panicked *timeout.PanicError
				if how == "panic" && (len(hooked) != 1 || !errors.As(hooked[0], &panicked)) { // SPEC 3.24
					t.Errorf("hooks were told %v", hooked)
				}
				sc.close(c)
			})
		})
	}
}

// manyRequests tests SPEC 8.3: of many calls in one session, each is renewed by its own progress and by no other.
func manyRequests(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		sc := new(Script)
		c := dial(t, sdk, ClientConfig{Limited: true, Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}}, sc, func(r *Asked) {
			if r.name() == "works" {
				time.Sleep(900 * ms)
				r.progress(1, "")
				time.Sleep(900 * ms)
				r.answer(`{"content":[]}`)
			}
		})
		defer sc.close(c)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				tool := []string{"works", "works", "hangs"}[i%3]
				var token any // several callers may use the same token
				if i%2 == 0 {
					token = "same"
				}
				if _, err := c.Call(t.Context(), tool, token, nil); tool == "hangs" {
					if e := timedOut(t, sdk, err, "tools/call"); e.Elapsed != s {
						t.Errorf("%+v", e)
					}
				} else if err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
	})
}

// unruly tests SPEC 8.2, 8.3 with a server that breaks the protocol: progress that does not increase, progress after
// the end, and a late answer cause no errors and affect no other request. The TypeScript SDK fails in these cases.
func unruly(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		var h hearer
		calls := 0
		sc := new(Script)
		c := dial(t, sdk, ClientConfig{Limited: true, Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}, OnProgress: h.note}, sc, func(r *Asked) {
			if r.Method != "tools/call" {
				return
			}
			if calls++; calls > 1 {
				r.answer(`{"content":[]}`)
				r.progress(9, "m")
				r.answer(`{"content":[]}`)
				return
			}
			for _, value := range []float64{2, 2, 1} {
				time.Sleep(900 * ms)
				r.progress(value, "m")
			}
			time.Sleep(1500 * ms) // until the request has timed out
			r.progress(3, "m")
			r.answer(`{"content":[]}`)
			sc.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1}}`)
			sc.send(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		})
		defer sc.close(c)
		begun := time.Now()
		_, err := c.Call(t.Context(), "work", "first", nil)
		if e := timedOut(t, sdk, err, "tools/call"); e.Elapsed != 3700*ms || e.Beats != 3 || time.Since(begun) != 3700*ms {
			t.Errorf("%v after %v: %+v", err, time.Since(begun), e)
		}
		time.Sleep(s)
		if _, err := c.Call(t.Context(), "work", "second", nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if d := cmp.Diff([]string{"first 2 m", "first 2 m", "first 1 m", "first 3 m", "nobody's 1 ", "second 9 m"}, h.list()); d != "" {
			t.Error(d)
		}
	})
}

// clientLog tests SPEC 8.10: the log records of a client have the names of the tool and the server, and their advice is
// for the author of the client.
func clientLog(t *testing.T, sdk SDK) {
	for name, tc := range map[string]struct {
		limits request.Limits
		abort  time.Duration
		want   string
	}{
		"idle":  {request.Limits{Timeout: s}, 0, `error.message="No progress for 1s (idle timeout). The server has sent neither an answer nor progress: raise the client's limit, or let progress renew it."`},
		"total": {request.Limits{MaxTotal: s}, 0, `error.message="Request exceeded wall-clock limit of 1s. If the server may take longer, raise the client's limit."`},
		"abort": {request.Limits{Timeout: time.Hour}, s, `msg="tool was aborted" tool=build`},
	} {
		for _, version := range []string{Old, New} {
			t.Run(name+" "+version, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var log bytes.Buffer
					sc := new(Script)
					c := dial(t, sdk, ClientConfig{Limited: true, Version: version, PerMethod: map[string]request.Limits{"tools/call": tc.limits},
						Logger: slog.New(slog.NewTextHandler(&log, nil))}, sc, func(*Asked) {})
					defer sc.close(c)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if tc.abort > 0 {
						time.AfterFunc(tc.abort, cancel)
					}
					if _, err := c.Call(ctx, "build", nil, nil); err == nil {
						t.Error("no error")
					}
					synctest.Wait()
					for _, want := range []string{"tool=build method=tools/call server=wire ", tc.want} {
						if !strings.Contains(log.String(), want) {
							t.Errorf("%s\nwant %s", log.String(), want)
						}
					}
					if strings.Contains(log.String(), "heartbeat()") {
						t.Error(log.String())
					}
				})
			})
		}
	}
}
