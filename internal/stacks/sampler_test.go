package stacks_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/internal/stacks"
)

const (
	frame  = "/stacks_test.stands("
	credit = 500 * time.Millisecond // 100 times 5 ms
)

// A process simulates the functions that a Sampler uses: the number of goroutines and the time that
// a dump takes.
type process struct {
	goroutines int
	cost       time.Duration
	text       string
	dumps      []int // the sizes of the buffers
}

func (p *process) sampler() *stacks.Sampler {
	return &stacks.Sampler{
		Frame:      frame,
		Goroutines: func() int { return p.goroutines },
		Dump: func(buf []byte) int {
			p.dumps = append(p.dumps, len(buf))
			time.Sleep(p.cost)
			return copy(buf, p.text)
		},
	}
}

// takes reports whether s takes a sample now.
func takes(t *testing.T, s *stacks.Sampler, most int) bool {
	t.Helper()
	_, fresh := s.Take(most)
	return fresh
}

// SPEC 3.9: no sample is taken of more goroutines than the caller allows.
func TestTooManyGoroutines(t *testing.T) {
	for _, tc := range []struct {
		n, most int
		want    bool
	}{{1, 2500, true}, {2499, 2500, true}, {2500, 2500, true}, {2501, 2500, false}, {2501, 5000, true}, {5001, 5000, false}, {0, 2500, true}} {
		p := &process{goroutines: tc.n}
		if got := takes(t, p.sampler(), tc.most); got != tc.want || len(p.dumps) > 0 != tc.want {
			t.Errorf("%d goroutines, at most %d: taken %v, %d dumps", tc.n, tc.most, got, len(p.dumps))
		}
	}
}

// A caller that is refused for the number of goroutines does not wait for a sample that is
// being taken.
func TestRefusedWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{goroutines: 2500, cost: time.Second}
		s := p.sampler()
		var first sync.WaitGroup
		first.Go(func() { s.Take(2500) })
		defer first.Wait()
		synctest.Wait()
		p.goroutines = 2501
		start := time.Now()
		if sample, fresh := s.Take(2500); sample != nil || fresh || time.Since(start) != 0 {
			t.Errorf("%v, %v after %v", sample, fresh, time.Since(start))
		}
	})
}

// SPEC 3.9: where callers come more often than ten times as long as a sample takes, none is taken, and they get the
// last one; each call counts, also one that is refused.
func TestQuiet(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		cost  time.Duration
		apart time.Duration // from the end of a call to the next
		calls int
		dumps int
	}{
		"at one instant":     {0, 0, 10, 10}, // as all bubbles have instants in common
		"in a row":           {ms, time.Microsecond, 1000, 1},
		"just too often":     {ms, 9*ms - 1, 20, 1},
		"just seldom enough": {ms, 10 * ms, 6, 6},
		"not known yet":      {0, 40*time.Microsecond - 1, 10, 1},
		"for 5 s":            {ms, 5 * ms, 1000, 1},
		"for longer":         {ms, 5 * ms, 2500, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &process{goroutines: 1, cost: tc.cost}
				s := p.sampler()
				s.Quiet = 10
				first, _ := s.Take(2500)
				for range tc.calls - 1 {
					time.Sleep(tc.apart)
					got, fresh := s.Take(2500)
					if fresh {
						first = got
					} else if got != first {
						t.Error("it is not the last one")
					}
				}
				if len(p.dumps) != tc.dumps {
					t.Errorf("%d samples, want %d", len(p.dumps), tc.dumps)
				}
				runtime.KeepAlive(first)
			})
		})
	}
}

// SPEC 3.9: samples take at most 1 % of the time, plus 5 ms in advance: the next one is taken if the debt is below the price of 5 ms, to the nanosecond.
func TestCredit(t *testing.T) {
	for _, tc := range []struct {
		cost time.Duration
		row  int // so many follow on one another
	}{
		{time.Millisecond, 6}, // 5 ms have passed by the end of the fifth, so a bit is paid for
		{5 * time.Millisecond, 2},
		{6 * time.Millisecond, 1},
		{20 * time.Millisecond, 1},
	} {
		t.Run(tc.cost.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &process{goroutines: 100, cost: tc.cost}
				s := p.sampler()
				for round := range 2 {
					start := time.Now()
					row := 0
					for takes(t, s, 2500) {
						row++
					}
					if row != tc.row {
						t.Fatalf("round %d: %d samples in a row, want %d", round, row, tc.row)
					}
					due := start.Add(time.Duration(row)*100*tc.cost - credit)
					time.Sleep(time.Until(due))
					if takes(t, s, 2500) {
						t.Error("taken though the whole credit is used up")
					}
					time.Sleep(time.Nanosecond)
					if !takes(t, s, 2500) {
						t.Error("refused a nanosecond later")
					}
					// Unused time is not saved: after an hour the credit is the same.
					time.Sleep(time.Hour)
				}
			})
		})
	}
}

// A sample that was taken while the machine stood still does not prevent others for hours.
func TestOneSlowSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{goroutines: 100, cost: time.Hour}
		s := p.sampler()
		start := time.Now()
		s.Take(2500)
		p.cost = 0
		if !takes(t, s, 2500) || time.Since(start) != time.Hour {
			t.Error("its own hour does not pay for it") // 25 s are owed from its beginning
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &process{goroutines: 100, cost: 400 * time.Millisecond}
		s := p.sampler()
		start := time.Now()
		s.Take(2500)
		due := start.Add(25*time.Second - credit)
		time.Sleep(time.Until(due))
		if takes(t, s, 2500) {
			t.Error("paid for too early")
		}
		time.Sleep(time.Nanosecond)
		if !takes(t, s, 2500) {
			t.Error("more than 25 s are owed")
		}
	})
}

// SPEC 3.9: limits that fire together share a sample: callers that wait during one share the next.
func TestShared(t *testing.T) {
	var dumps atomic.Int32
	under, proceed := make(chan struct{}), make(chan struct{})
	s := &stacks.Sampler{
		Frame: frame,
		Now:   func() time.Time { return time.Unix(0, 0) }, // they cost nothing
		Dump: func(buf []byte) int {
			if dumps.Add(1) == 1 {
				close(under)
				<-proceed
			}
			return 0
		},
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Take(2500) })
	<-under
	samples := make(chan *stacks.Sample, 100)
	for range cap(samples) {
		wg.Go(func() {
			sample, fresh := s.Take(2500)
			if !fresh {
				t.Error("not fresh")
			}
			samples <- sample
		})
	}
	blocked(t, cap(samples))
	close(proceed)
	wg.Wait()
	if dumps.Load() != 2 {
		t.Errorf("%d dumps, want 2: one in progress, and one for all that waited", dumps.Load())
	}
	first := <-samples
	for range cap(samples) - 1 {
		if <-samples != first {
			t.Fatal("they have different samples")
		}
	}
}

// blocked waits until n goroutines wait for a mutex.
func blocked(t *testing.T, n int) {
	t.Helper()
	buf := make([]byte, 4<<20)
	harness.Eventually(t, "all of them to wait", func() bool {
		return bytes.Count(buf[:runtime.Stack(buf, true)], []byte("[sync.Mutex.Lock]:")) >= n
	})
}

// A caller beyond the budget gets the last sample, if it is still in memory, and learns that it is
// not fresh.
func TestLastSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{goroutines: 100, cost: time.Second}
		s := p.sampler()
		began := time.Now()
		first, fresh := s.Take(2500)
		if !fresh || !first.Begun.Equal(began) {
			t.Errorf("fresh %v, begun %v after the call", fresh, first.Begun.Sub(began))
		}
		again, fresh := s.Take(2500)
		if fresh || again != first {
			t.Errorf("fresh %v, the same %v", fresh, again == first)
		}
		p.goroutines = 2501
		if again, fresh := s.Take(2500); fresh || again != first {
			t.Errorf("too many goroutines: fresh %v, the same %v", fresh, again == first)
		}
		runtime.KeepAlive(first)
	})
	collected := make(chan struct{})
	p := &process{goroutines: 100}
	s := p.sampler()
	func() {
		sample, _ := s.Take(2500)
		runtime.AddCleanup(sample, func(c chan struct{}) { close(c) }, collected)
	}()
	for gone := false; !gone; {
		runtime.GC()
		select {
		case <-collected:
			gone = true
		case <-time.After(time.Millisecond):
		}
	}
	p.goroutines = 2501
	if sample, fresh := s.Take(2500); sample != nil || fresh {
		t.Error("an unused sample is retained")
	}
}

// A Sampler is a global, and each bubble has a time of its own: debts and samples from a later time
// are ignored.
func TestClockGoesBack(t *testing.T) {
	p := &process{goroutines: 100, cost: 200 * time.Millisecond} // 20 s to pay for
	s := p.sampler()
	var kept *stacks.Sample
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		if kept, _ = s.Take(2500); kept == nil || takes(t, s, 2500) {
			t.Error("the ration does not hold in the first bubble")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p.goroutines = 2501
		if old, _ := s.Take(2500); old != nil {
			t.Error("a sample of another bubble is handed on")
		}
		p.goroutines = 100
		if !takes(t, s, 2500) {
			t.Error("the debt of another bubble counts")
		}
		if takes(t, s, 2500) {
			t.Error("the ration does not hold in the second bubble")
		}
	})
	if !takes(t, s, 2500) { // the real time is later than any bubble's
		t.Error("the debt of a bubble counts outside")
	}
	runtime.KeepAlive(kept)
}

// The buffer grows until it holds the whole text, and the next one has the right size at once.
func TestGrowth(t *testing.T) {
	const n = 1000
	p := &process{goroutines: n, text: strings.Repeat("x", 3000*n)}
	s := p.sampler()
	s.Now = func() time.Time { return time.Unix(0, 0) } // they cost nothing
	sample := func(want ...int) {
		t.Helper()
		p.dumps = nil
		if !takes(t, s, 2500) {
			t.Fatal("refused")
		}
		if fmt.Sprint(p.dumps) != fmt.Sprint(want) {
			t.Errorf("buffers of %v, want %v", p.dumps, want)
		}
	}
	const base = 64 << 10
	sample(base+n<<10, 2*(base+n<<10), 4*(base+n<<10))
	sample(base + 3750*n) // 3000 and a quarter
	p.goroutines = 2 * n
	sample(base + 3750*2*n)
	p.text = strings.Repeat("x", base+1875*2*n) // 1500 each were seen; and it just fills the buffer
	sample(base+1875*2*n, 2*(base+1875*2*n))
}

// Memory is bounded: longer text is cut.
func TestMostText(t *testing.T) {
	var sizes []int
	s := &stacks.Sampler{Frame: frame, Goroutines: func() int { return 100_000 }, Dump: func(buf []byte) int {
		sizes = append(sizes, len(buf))
		return len(buf)
	}}
	if _, fresh := s.Take(100_000); !fresh || fmt.Sprint(sizes) != fmt.Sprint([]int{64<<10 + 100_000<<10, 128 << 20}) {
		t.Errorf("buffers of %v", sizes)
	}
}
