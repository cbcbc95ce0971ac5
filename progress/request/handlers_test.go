package request_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// SPEC 8.3: handlers run in the order of arrival, those of one session after the other, and hold
// up nobody. The bubble would not end if a goroutine were left.
func TestHandlersOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add := request.New(nil).Handlers(0, 0)
		start := time.Now()
		var mu sync.Mutex
		got := make(map[string][]time.Duration)
		for i := range 3 {
			for _, session := range []string{"a", "b"} {
				add(session, func() {
					time.Sleep(s)
					mu.Lock()
					defer mu.Unlock()
					if len(got[session]) != i {
						t.Errorf("%s: %d is next", session, i)
					}
					got[session] = append(got[session], time.Since(start))
				})
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("add took %v", time.Since(start))
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		each := []time.Duration{s, 2 * s, 3 * s}
		if diff := cmp.Diff(map[string][]time.Duration{"a": each, "b": each}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		later := false
		add("a", func() { later = true })
		if synctest.Wait(); !later {
			t.Error("what came after a pause was not run")
		}
	})
}

// A handler that ends its goroutine takes nobody else's turn.
func TestHandlersGoexit(t *testing.T) {
	for wait, most := range map[time.Duration]int{0: 0, 20 * ms: 2} {
		synctest.Test(t, func(t *testing.T) {
			add := request.New(nil).Handlers(wait, most)
			start := time.Now()
			ran := 0
			for range 5 {
				add(nil, func() { ran++; runtime.Goexit() })
			}
			add(nil, func() { ran++ })
			if synctest.Wait(); ran != 6 || time.Since(start) != 0 {
				t.Errorf("%d ran in %v", ran, time.Since(start))
			}
		})
	}
}

// How long add takes, with handlers that each take a while.
func TestHandlersWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wait  time.Duration
		most  int
		takes time.Duration
		want  []time.Duration
	}{
		{"not at all", 0, 0, s, []time.Duration{0, 0, 0, 0, 0}},
		{"for a quick one", 20 * ms, 0, 19 * ms, []time.Duration{19 * ms, 19 * ms, 19 * ms, 19 * ms, 19 * ms}},
		{"not long for a slow one, and not for what is behind it", 20 * ms, 0, s, []time.Duration{20 * ms, 20 * ms, 0, 0, 0}},
		{"when it is full", 20 * ms, 3, s, []time.Duration{20 * ms, 20 * ms, 0, 0, 4960 * ms}},
		{"when it is full, and only then", 0, 2, s, []time.Duration{0, 0, 0, 4 * s, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				add := request.New(nil).Handlers(tc.wait, tc.most)
				var got []time.Duration
				for range tc.want {
					start := time.Now()
					add("s", func() { time.Sleep(tc.takes) })
					got = append(got, time.Since(start))
					synctest.Wait()
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}
