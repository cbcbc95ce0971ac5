package peer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	total = 60 * time.Second
	idle  = 10 * time.Second
)

var failsafe = peer.NewFailsafe(total)

// peers are all that are compared, with what each of them can do.
var peers = []struct {
	name  string
	run   peer.Run
	idle  bool          // has an idle limit
	late  time.Duration // how late that may fire
	deaf  bool          // returns even if the function does not
	cause bool          // the context tells which limit it was
}{
	{"tooldeadline", peer.Tooldeadline, true, 0, true, true},
	{"by-hand", peer.ByHand, false, 0, true, true},
	{"timer-reset", peer.TimerReset, true, 0, true, true},
	{"polling", peer.Polling, true, peer.PollInterval, true, true},
	{"failsafe-sync", failsafe.Sync, false, 0, false, false},
	{"failsafe-async", failsafe.Async, false, 0, true, false},
}

func isTotal(err error) bool {
	return errors.Is(err, peer.ErrTotal) || errors.Is(err, timeout.ErrTotal)
}

func isIdle(err error) bool { return errors.Is(err, peer.ErrIdle) || errors.Is(err, timeout.ErrIdle) }

// each runs f for every peer in a bubble of its own, which fails where a goroutine is
// left behind.
func each(t *testing.T, f func(t *testing.T, i int)) {
	for i, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, i) })
		})
	}
}

func TestReturnsTheResult(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		want := errors.New("own")
		got := peers[i].run(t.Context(), peer.Limits{Total: total, Idle: idle}, func(context.Context, peer.Beater) error {
			return want
		})
		if got != want {
			t.Errorf("got %v, want the function's own error", got)
		}
	})
}

func TestTotal(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		p, start := peers[i], time.Now()
		var cause error
		err := p.run(t.Context(), peer.Limits{Total: total, Idle: total}, func(ctx context.Context, _ peer.Beater) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		if got := time.Since(start); got != total {
			t.Errorf("returned after %v, want %v", got, total)
		}
		if p.name == "failsafe-sync" {
			return // its error is its own
		}
		// At the same instant as an idle limit the peers written by hand may give
		// either; the library has the total.
		if !isTotal(err) && !isIdle(err) {
			t.Errorf("error is %v", err)
		}
		if p.cause && !isTotal(cause) && !isIdle(cause) {
			t.Errorf("cause is %v", cause)
		}
	})
}

func TestIdle(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		p, start := peers[i], time.Now()
		if !p.idle {
			t.Skip("has no idle limit")
		}
		const beats = 4
		err := p.run(t.Context(), peer.Limits{Total: total, Idle: idle}, func(ctx context.Context, b peer.Beater) error {
			for range beats { // each of them renews
				time.Sleep(idle - time.Nanosecond)
				b.Beat()
			}
			<-ctx.Done()
			if !isIdle(context.Cause(ctx)) {
				t.Errorf("cause is %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		due := beats*(idle-time.Nanosecond) + idle
		if got := time.Since(start); got < due || got > due+p.late {
			t.Errorf("returned after %v, want %v, at most %v late", got, due, p.late)
		}
		if !isIdle(err) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestCallerCancels(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := peers[i].run(ctx, peer.Limits{Total: total, Idle: idle}, func(ctx context.Context, _ peer.Beater) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if got := time.Since(start); got != time.Second || err == nil {
			t.Errorf("returned %v after %v", err, got)
		}
	})
}

func TestDeafFunction(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		p, start := peers[i], time.Now()
		err := p.run(t.Context(), peer.Limits{Total: total, Idle: total}, func(context.Context, peer.Beater) error {
			time.Sleep(time.Hour)
			return nil
		})
		got := time.Since(start)
		if p.deaf && (got != total+peer.Grace || err == nil) {
			t.Errorf("returned %v after %v, want the limit and the grace", err, got)
		}
		if !p.deaf && got != time.Hour {
			t.Errorf("returned after %v: say in its comment that it does not wait any more", got)
		}
		time.Sleep(2 * time.Hour) // the function returns, inside the bubble
	})
}

func TestPanicReachesTheCaller(t *testing.T) {
	each(t, func(t *testing.T, i int) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = peers[i].run(t.Context(), peer.Limits{Total: total, Idle: idle}, func(context.Context, peer.Beater) error {
			panic("function")
		})
	})
}

// The watchdogs alone, as the benchmarks of a single beat use them.
func TestDogs(t *testing.T) {
	type dog interface {
		peer.Beater
		Stop()
	}
	for _, tc := range []struct {
		name string
		make func(time.Duration, func()) dog
		late time.Duration
	}{
		{"timer-reset", func(d time.Duration, f func()) dog { return peer.NewResetDog(d, f) }, 0},
		{"mutex", func(d time.Duration, f func()) dog { return peer.NewMutexDog(d, f) }, 0},
		{"polling", func(d time.Duration, f func()) dog { return peer.NewPollDog(d, f) }, peer.PollInterval},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fired := make(chan time.Time, 1)
				d := tc.make(idle, func() { fired <- time.Now() })
				for range 5 {
					time.Sleep(idle - time.Nanosecond)
					d.Beat()
				}
				due := time.Now().Add(idle)
				if at := <-fired; at.Before(due) || at.After(due.Add(tc.late)) {
					t.Errorf("fired %v after the limit", at.Sub(due))
				}
				d.Stop()

				d = tc.make(idle, func() { t.Error("fired after Stop") })
				d.Stop()
				time.Sleep(2 * idle)
			})
		})
	}
}
