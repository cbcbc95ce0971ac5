package adapter_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

const ms = time.Millisecond

// SPEC 8.3: handlers run in the order of arrival, those of one session after the other, and hold
// up nobody. The bubble would not end if a goroutine were left.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q adapter.Queue
		start := time.Now()
		var mu sync.Mutex
		got := make(map[string][]time.Duration)
		for i := range 3 {
			for _, session := range []string{"a", "b"} {
				q.Add(session, func() {
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
			t.Errorf("Add took %v", time.Since(start))
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		each := []time.Duration{s, 2 * s, 3 * s}
		if diff := cmp.Diff(map[string][]time.Duration{"a": each, "b": each}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		later := false
		q.Add("a", func() { later = true })
		if synctest.Wait(); !later {
			t.Error("what came after a pause was not run")
		}
	})
}

// A handler that ends its goroutine takes nobody else's turn.
func TestQueueGoexit(t *testing.T) {
	for _, q := range []*adapter.Queue{{}, {Wait: 20 * ms, Max: 2}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ran := 0
			for range 5 {
				q.Add(nil, func() { ran++; runtime.Goexit() })
			}
			q.Add(nil, func() { ran++ })
			if synctest.Wait(); ran != 6 || time.Since(start) != 0 {
				t.Errorf("%d ran in %v", ran, time.Since(start))
			}
		})
	}
}

// How long Add takes, with handlers that each take a while.
func TestQueueWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		queue *adapter.Queue
		takes time.Duration
		want  []time.Duration
	}{
		{"not at all", &adapter.Queue{}, s, []time.Duration{0, 0, 0, 0, 0}},
		{"for a quick one", &adapter.Queue{Wait: 20 * ms}, 19 * ms, []time.Duration{19 * ms, 19 * ms, 19 * ms, 19 * ms, 19 * ms}},
		{"not long for a slow one, and not for what is behind it", &adapter.Queue{Wait: 20 * ms}, s, []time.Duration{20 * ms, 20 * ms, 0, 0, 0}},
		{"when it is full", &adapter.Queue{Wait: 20 * ms, Max: 3}, s, []time.Duration{20 * ms, 20 * ms, 0, 0, 4960 * ms}},
		{"when it is full, and only then", &adapter.Queue{Max: 2}, s, []time.Duration{0, 0, 0, 4 * s, 0}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var got []time.Duration
			for range tc.want {
				start := time.Now()
				tc.queue.Add("s", func() { time.Sleep(tc.takes) })
				got = append(got, time.Since(start))
				synctest.Wait()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			time.Sleep(time.Hour)
		})
	}
}
