package sdktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

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
	return slices.Clone(h.all)
}

// ownToken tests SPEC 8.3: the progress handler is called as it is without Limit, with the caller's own token and the
// message, and not for requests without a token of the caller. The caller's params are not changed.
func ownToken(t *testing.T, sdk SDK) {
	for _, token := range []any{"mine", 7, nil} {
		Bubble(t, fmt.Sprint(token), func(t *testing.T) {
			var h hearer
			c := new(Script).dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}, OnProgress: h.note}, func(r *Asked) {
				for i := range 3 {
					time.Sleep(900 * ms)
					r.progress(float64(i+1), fmt.Sprint("step ", i+1))
				}
				r.answer(`{"content":[]}`)
			})
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
		Bubble(t, how, func(t *testing.T) {
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
			c := sc.dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true},
				OnProgress: func(_ context.Context, _ any, _ float64, message string) { slow(message) }, OnChanged: func() { slow("tools") },
				Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
					if s.Err != nil {
						hooked = append(hooked, s.Err)
					}
				}},
			}, func(r *Asked) {
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
		})
	}
}

// manyRequests tests SPEC 8.3: of many calls in one session, each is renewed by its own progress and by no other.
func manyRequests(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		c := new(Script).dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}}, func(r *Asked) {
			if r.name() == "works" {
				time.Sleep(900 * ms)
				r.progress(1, "")
				time.Sleep(900 * ms)
				r.answer(`{"content":[]}`)
			}
		})
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
		c := sc.dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: s, ResetOnProgress: true}, OnProgress: h.note}, func(r *Asked) {
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
