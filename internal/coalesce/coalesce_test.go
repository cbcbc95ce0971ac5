package coalesce

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// inDo waits until n callers are in Do.
func inDo[T any](t *testing.T, c *Call[T], n int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.waiting.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d callers in Do, want %d", c.waiting.Load(), n)
		}
	}
}

// Callers that come during a call share the next one, and not the one in progress.
func TestShared(t *testing.T) {
	var c Call[int]
	var calls atomic.Int32
	under, proceed := make(chan struct{}), make(chan struct{})
	first := make(chan int)
	go func() {
		v, fresh := c.Do(func() (int, bool) {
			close(under)
			<-proceed
			return int(calls.Add(1)), true
		})
		if !fresh {
			t.Error("the caller's own result is not fresh")
		}
		first <- v
	}()
	<-under

	const n = 50
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			v, fresh := c.Do(func() (int, bool) { return int(calls.Add(1)), true })
			if v != 2 || !fresh {
				t.Errorf("%d, fresh %v, want the second call's", v, fresh)
			}
		})
	}
	inDo(t, &c, n+1)
	close(proceed)
	if v := <-first; v != 1 {
		t.Errorf("the first caller has %d", v)
	}
	wg.Wait()
	if calls.Load() != 2 {
		t.Errorf("%d calls, want 2", calls.Load())
	}
	if v, fresh := c.Do(func() (int, bool) { return 7, true }); v != 7 || !fresh {
		t.Errorf("afterwards %d, fresh %v: an old result was shared", v, fresh)
	}
}

// Join shares the call in progress if it began recently enough and does not decline, but never a
// call that was over before. Do never shares the call in progress.
func TestJoin(t *testing.T) {
	for name, tt := range map[string]struct {
		join            bool
		slack           time.Duration
		answers, shared bool
	}{
		"it answers":             {true, time.Hour, true, true},
		"it declines":            {true, time.Hour, false, false},
		"it has begun too early": {true, -1, true, false},
		"they do not join":       {false, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c Call[int]
			c.Do(func() (int, bool) { return 1, true })
			var calls, shared atomic.Int32
			calls.Store(1)
			under, proceed := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				v, fresh := c.Join(tt.slack, func() (int, bool) {
					close(under)
					<-proceed
					return int(calls.Add(1)), tt.answers
				})
				if v != 2 || fresh != tt.answers {
					t.Errorf("the first: %d, fresh %v", v, fresh)
				}
			})
			<-under
			next := func() (int, bool) { return int(calls.Add(1)), true }
			for range 50 {
				wg.Go(func() {
					do := c.Do
					if tt.join {
						do = func(f func() (int, bool)) (int, bool) { return c.Join(tt.slack, f) }
					}
					v, fresh := do(next)
					if v < 2 || !fresh {
						t.Errorf("%d, fresh %v", v, fresh)
					}
					if v == 2 {
						shared.Add(1)
					}
				})
			}
			inDo(t, &c, 51)
			close(proceed)
			wg.Wait()
			// Some callers may not have checked yet whether a call is in progress.
			if got := shared.Load() > 0; got != tt.shared {
				t.Errorf("%d have shared it, want any: %v", shared.Load(), tt.shared)
			}
			if v, fresh := c.Join(tt.slack, func() (int, bool) { return -7, true }); v != -7 || !fresh {
				t.Errorf("afterwards %d, fresh %v: an old result was shared", v, fresh)
			}
		})
	}
}

// After a call that declines, the next caller makes its own; after a call that succeeds, it does
// not.
func TestDeclined(t *testing.T) {
	var c Call[int]
	under, proceed := make(chan struct{}), make(chan struct{})
	go c.Do(func() (int, bool) { close(under); <-proceed; return 0, true })
	<-under
	var asked atomic.Int32
	var wg sync.WaitGroup
	var declined atomic.Int32
	for range 20 {
		wg.Go(func() {
			v, fresh := c.Do(func() (int, bool) {
				if n := asked.Add(1); n < 4 {
					return -1, false
				}
				return 4, true
			})
			switch {
			case v == -1 && !fresh:
				declined.Add(1)
			case v != 4 || !fresh:
				t.Errorf("%d, fresh %v", v, fresh)
			}
		})
	}
	inDo(t, &c, 21)
	close(proceed)
	wg.Wait()
	if asked.Load() != 4 || declined.Load() != 3 {
		t.Errorf("asked %d times, declined %d, want 4 and 3", asked.Load(), declined.Load())
	}
}

// A call that panics leaves the Call unchanged.
func TestPanic(t *testing.T) {
	var c Call[int]
	func() {
		defer func() { _ = recover() }()
		c.Do(func() (int, bool) { panic("broken") })
	}()
	if v, fresh := c.Do(func() (int, bool) { return 3, true }); v != 3 || !fresh || c.waiting.Load() != 0 {
		t.Errorf("%d, %v, %d waiting", v, fresh, c.waiting.Load())
	}
}

// A result is released when no caller waits for it.
func TestNothingIsKept(t *testing.T) {
	var c Call[*[1 << 20]byte]
	collected := make(chan struct{})
	c.Do(func() (*[1 << 20]byte, bool) {
		b := new([1 << 20]byte)
		runtime.AddCleanup(b, func(done chan struct{}) { close(done) }, collected)
		return b, true
	})
	for deadline := time.Now().Add(20 * time.Second); ; {
		runtime.GC()
		select {
		case <-collected:
			runtime.KeepAlive(&c)
			return
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("it is kept")
		}
	}
}
