//go:build unix

package benchmarks

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
)

// BenchmarkGuarantees is what each guarantee of a run with a total costs: every step does by hand what the one before
// does, and one thing more; the last is the library. The steps take turns, and the figures are the medians of the
// processor time of a run, in ns:
//
//	go test -run '^$' -bench Guarantees -benchtime 200x -cpu 1,2
func BenchmarkGuarantees(b *testing.B) {
	ctx := caller(b)
	steps := []contender{
		{"1-deadline", onlyDeadline},
		{"2-goroutine", withGoroutine},
		{"3-panic", peer.ByHand},
		{"4-strict", strictly},
		{"5-err", withErr},
		{"6-state", withState},
		{"7-library", library(totalOnly)},
	}
	const batch = 1000
	took := make([][]float64, len(steps))
	for b.Loop() {
		for i, s := range steps {
			from := processorTime(b)
			for range batch {
				if err := s.run(ctx, totalOnly, nothing); err != nil {
					b.Fatal(err)
				}
			}
			took[i] = append(took[i], float64(processorTime(b)-from)/batch)
		}
	}
	for i, all := range took {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], steps[i].name+"-ns")
	}
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// onlyDeadline has a limit that a function may ignore, and its caller with it.
func onlyDeadline(ctx context.Context, l peer.Limits, fn peer.Func) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Total, peer.ErrTotal)
	defer cancel()
	return fn(ctx, nil)
}

// withGoroutine returns at the limit, whatever the function does. A panic of that ends the process.
func withGoroutine(ctx context.Context, l peer.Limits, fn peer.Func) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Total, peer.ErrTotal)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- fn(ctx, nil) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A strict run is decided once, under a lock, by the clock: a function that returns at or after the limit is not in
// time, whichever goroutine is first. peer.ByHand leaves that to the select.
type strict struct {
	mu      sync.Mutex
	start   time.Time
	total   time.Duration
	decided bool
	stop    error
}

// decide reports whether this call has decided.
func (s *strict) decide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided {
		return false
	}
	s.decided = true
	if time.Since(s.start) >= s.total {
		s.stop = peer.ErrTotal
	}
	return true
}

func (s *strict) outcome(err error) error {
	if s.stop != nil {
		return s.stop
	}
	return err
}

func strictly(ctx context.Context, l peer.Limits, fn peer.Func) error {
	s := &strict{start: time.Now(), total: l.Total}
	return peer.ByHand(ctx, l, func(ctx context.Context, b peer.Beater) error {
		err := fn(ctx, b)
		s.decide()
		return s.outcome(err)
	})
}

// A chosen run has a context of which it chooses the Err, when it ends it: after an idle limit, of which no timer of
// the standard library's knows, that has to be context.DeadlineExceeded, at once and for all contexts that are made from
// it. See timeout/context.go.
type chosen struct {
	strict
	context.Context
	propagate func()
	timer     *time.Timer
	err       error
}

var never = make(chan struct{})

func (c *chosen) Done() <-chan struct{} { return never }

func (c *chosen) AfterFunc(propagate func()) func() bool {
	c.propagate = propagate
	return func() bool { return false }
}

func (c *chosen) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *chosen) end(err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.propagate()
}

func withErr(ctx context.Context, l peer.Limits, fn peer.Func) error {
	return new(chosen).run(ctx, l, fn)
}

func (c *chosen) run(ctx context.Context, l peer.Limits, fn peer.Func) error {
	c.start, c.total, c.Context = time.Now(), l.Total, ctx
	inner, cancel := context.WithCancel(c)
	_ = cancel
	c.timer = time.AfterFunc(l.Total, func() {
		if c.decide() {
			c.end(context.DeadlineExceeded)
		}
	})
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			_ = recover()
			if c.decide() {
				c.timer.Stop()
				c.end(context.Canceled)
			}
			done <- err
		}()
		err = fn(inner, nil)
	}()
	select {
	case <-inner.Done():
	case <-ctx.Done():
	}
	return c.outcome(<-done)
}

// withState is withErr with room for what the library knows of a run: its heartbeats, holds and gaps, what an error and
// a snapshot say, its hooks and those of the process.
func withState(ctx context.Context, l peer.Limits, fn peer.Func) error {
	r := new(struct {
		chosen
		room [480 - 128]byte // an execution has 480 bytes
		_    *byte
	})
	return r.run(ctx, l, fn)
}
