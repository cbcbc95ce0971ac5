package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// Guarantee 3, where what is given is out of bounds: a grace beyond all time, and a beginning on a clock that is ahead.
func TestLostOutOfBounds(t *testing.T) {
	for _, row := range []struct {
		name  string
		since time.Duration
		grace time.Duration
		told  time.Duration
	}{
		{"a grace without an end", 0, math.MaxInt64, duration / 2},
		{"a beginning that is still to come", time.Hour, grace, relied},
	} {
		bubble(t, row.name, func(t *testing.T) {
			l, _ := leased(errAway)
			begun := time.Now()
			l.Since = begun.Add(row.since)
			_ = lease.Run(t.Context(), l, waits, timeout.Config{Grace: row.grace})
			if told := time.Since(begun); told != row.told {
				t.Errorf("told after %v, want %v", told, row.told)
			}
		})
	}
}

// Guarantee 7: what a wait says of itself is no detail of the work.
func TestDetailOfWait(t *testing.T) {
	bubble(t, "await", func(t *testing.T) {
		l, b := leased()
		_ = lease.Run(t.Context(), l, func(ctx context.Context) error {
			heartbeat.BeatWith(ctx, "page 7")
			_, err := progress.Await(ctx, "approval", progress.Wait{}, func(context.Context) (int, error) { return 0, silent(15 * time.Second)(ctx) })
			return err
		}, sleeping)
		b.is(t, "10s renew 7 page 7", "15s release 7 page 7 <nil>")
	})
}

// Check knows of all leases within which a function works, and of a release whose answer is not here yet.
func TestCheckAll(t *testing.T) {
	bubble(t, "nested", func(t *testing.T) {
		outer, _ := leased(errAway)
		inner, _ := leased()
		_ = lease.Run(t.Context(), outer, func(ctx context.Context) error {
			return lease.Run(ctx, inner, func(ctx context.Context) error {
				time.Sleep(relied - 1)
				before := lease.Check(ctx)
				time.Sleep(time.Nanosecond)
				if after := lease.Check(ctx); before != nil || after != lease.ErrLost {
					t.Errorf("got %v and %v", before, after)
				}
				return nil
			}, sleeping)
		}, sleeping)
	})
	bubble(t, "releasing", func(t *testing.T) {
		l, _ := leased()
		var work, write error
		l.Release = func(ctx context.Context, _ lease.Checkpoint) error {
			write = lease.Check(ctx)
			return silent(4 * time.Second)(ctx)
		}
		done := make(chan struct{})
		_ = lease.Run(t.Context(), l, func(ctx context.Context) error {
			defer close(done)
			time.Sleep(time.Second + grace + 2*time.Second)
			work = lease.Check(ctx)
			return nil
		}, timeout.Config{Total: time.Second, Grace: grace})
		<-done
		if work != lease.ErrLost || write != nil {
			t.Errorf("the abandoned function got %v, Release %v", work, write)
		}
	})
}

// Guarantee 8: a release is tried again soon, however long the lease is, also when the worker stops; and a write may take
// longer than it is to the next renewal.
func TestTriedAgainSoon(t *testing.T) {
	bubble(t, "release", func(t *testing.T) {
		l, b := leased()
		l.Duration = 12 * time.Hour
		failed := false
		l.Release = func(context.Context, lease.Checkpoint) error {
			b.note("release")
			if failed {
				return nil
			}
			failed = true
			return errAway
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = lease.Run(ctx, l, waits, sleeping)
		b.is(t, "1s release", "1.5s release")
	})
	bubble(t, "slow", func(t *testing.T) {
		l, _ := leased()
		l.Every = 100 * time.Millisecond
		l.Renew = func(ctx context.Context, _ lease.Checkpoint) error {
			select {
			case <-time.After(150 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := lease.Run(t.Context(), l, silent(time.Hour), sleeping); err != nil {
			t.Error(err)
		}
	})
}

// Run returns what Release has said, also where a lease around this one was lost, and its error wraps no nil.
func TestUnreleased(t *testing.T) {
	refused := fmt.Errorf("no row: %w", lease.ErrLost)
	bubble(t, "nested", func(t *testing.T) {
		outer, _ := leased(errAway)
		inner, _ := leased()
		inner.Release = func(context.Context, lease.Checkpoint) error { return refused }
		_ = lease.Run(t.Context(), outer, func(ctx context.Context) error {
			err := lease.Run(ctx, inner, waits, sleeping)
			if !errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
			return err
		}, sleeping)
	})
	bubble(t, "done", func(t *testing.T) {
		l, _ := leased()
		said := []error{errAway, refused}
		l.Release = func(context.Context, lease.Checkpoint) (err error) { err, said = said[0], said[1:]; return err }
		err := lease.Run(t.Context(), l, silent(time.Second), sleeping)
		if errors.Is(err, errAway) || !errors.Is(err, refused) { // the last word
			t.Errorf("got %v", err)
		}
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			if e == nil {
				t.Error("wraps nil")
			}
		}
	})
}

// A lease without a duration is tried to be released for 5 s, also on a clock that stands.
func TestReleaseOnAClockThatStands(t *testing.T) {
	bubble(t, "mock", func(t *testing.T) {
		tries := 0
		begun := time.Now()
		err := lease.Run(t.Context(), lease.Lease{
			Renew:   func(context.Context, lease.Checkpoint) error { return nil },
			Release: func(context.Context, lease.Checkpoint) error { tries++; return errAway },
		}, func(context.Context) error { return nil }, timeout.WithClock(clock.NewMock()))
		if took := time.Since(begun); took != 5*time.Second || tries < 2 || !errors.Is(err, lease.ErrUnconfirmed) || errors.Is(err, lease.ErrLost) {
			t.Errorf("%v after %v and %d tries", err, took, tries)
		}
	})
}

// A Duration that lacks its unit is an error of the program, and not a lease that is lost.
func TestDurationWithoutUnit(t *testing.T) {
	for _, d := range []time.Duration{30, 3*time.Millisecond - 1} {
		l, _ := leased()
		l.Duration = d
		func() {
			defer func() {
				if wrong, ok := recover().(*timeout.ConfigError); !ok || wrong.Key != "lease.Lease.Duration" {
					t.Errorf("%v: got %v", d, wrong)
				}
			}()
			_ = lease.Run(t.Context(), l, waits)
		}()
	}
}

// SPEC 13.5, guarantee 8: a lease that still lasts when the worker's 5 s are over is not lost: nobody knows what became of the release. One that
// ends meanwhile is. Both errors have what Release has said.
func TestReleaseUnconfirmed(t *testing.T) {
	for name, tc := range map[string]struct {
		left    time.Duration // of the lease, when the worker stops
		release func(context.Context, lease.Checkpoint) error
		want    string
		lost    bool
	}{
		"errors": {duration, func(context.Context, lease.Checkpoint) error { return errAway },
			"lease: work is done, and not known to be released: the engine has not confirmed it within 5 s: the engine is away", false},
		"no answer": {duration, func(context.Context, lease.Checkpoint) error { time.Sleep(time.Minute); return nil },
			"lease: work is done, and not known to be released: the engine has not confirmed it within 5 s", false},
		"the lease ends": {4 * time.Second, func(context.Context, lease.Checkpoint) error { return errAway },
			"lease: work is done, and not known to be released: lease lost: somebody else may hold it: the engine is away", true},
	} {
		bubble(t, name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			l, _ := leased()
			l.Duration = tc.left
			l.Release = func(ctx context.Context, s lease.Checkpoint) error { stop(); return tc.release(ctx, s) }
			err := lease.Run(ctx, l, func(context.Context) error { return nil }, sleeping)
			time.Sleep(time.Hour)
			if err == nil || err.Error() != tc.want || errors.Is(err, lease.ErrLost) != tc.lost || errors.Is(err, lease.ErrUnconfirmed) == tc.lost {
				t.Errorf("got %v, lost %v", err, errors.Is(err, lease.ErrLost))
			}
		})
	}
}

// The text of work whose lease is lost says why.
func TestLossSays(t *testing.T) {
	for name, tc := range map[string]struct {
		renew error
		want  string
	}{
		"no renewal":        {errAway, "Tool was aborted: lease lost: somebody else may hold it, since no renewal has succeeded for 50s: the engine is away"},
		"refused":           {lease.ErrLost, "Tool was aborted: lease lost: somebody else may hold it"},
		"refused, in words": {fmt.Errorf("no row: %w", lease.ErrLost), "Tool was aborted: no row: lease lost: somebody else may hold it"},
	} {
		bubble(t, name, func(t *testing.T) {
			l, _ := leased(tc.renew)
			err := lease.Run(t.Context(), l, waits, sleeping)
			if err.Error() != tc.want || !errors.Is(err, lease.ErrLost) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What became of the renewal before the newest successful one is no reason why a lease is lost.
func TestLossForgets(t *testing.T) {
	bubble(t, "deaf", func(t *testing.T) {
		answer := make(chan struct{})
		answers := []func() error{func() error { return errAway }, func() error { return nil }, func() error { <-answer; return nil }}
		l, _ := leased()
		l.Renew = func(context.Context, lease.Checkpoint) error {
			next := answers[0]
			answers = answers[1:]
			return next()
		}
		err := lease.Run(t.Context(), l, waits, sleeping)
		if !errors.Is(err, lease.ErrLost) || errors.Is(err, errAway) || strings.Contains(err.Error(), errAway.Error()) {
			t.Errorf("got %v", err)
		}
		close(answer)
	})
}

// A limit that stops the work does not hide that the lease is lost before the work has returned.
func TestLostWhileStopping(t *testing.T) {
	bubble(t, "grace", func(t *testing.T) {
		l, _ := leased(errAway)
		l.Release = func(context.Context, lease.Checkpoint) error { t.Error("released"); return nil }
		err := lease.Run(t.Context(), l, silent(relied+time.Second), timeout.Config{Total: relied - time.Second, Grace: grace})
		if !errors.Is(err, timeout.ErrTotal) || !errors.Is(err, lease.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

func keeps(context.Context, lease.Checkpoint) error { return nil }

// A deafError never says its text.
type deafError struct{ until <-chan struct{} }

func (e deafError) Error() string { <-e.until; return "" }

// SPEC 3.24, 3.25: Run does not wait for the text of an error of Release, also where its own error has it, nor is that longer than what is shown.
func TestReleaseWithoutText(t *testing.T) {
	bubble(t, "run", func(t *testing.T) {
		until := make(chan struct{})
		l, b := leased()
		l.Release = func(context.Context, lease.Checkpoint) error { return deafError{until} }
		err := lease.Run(t.Context(), l, silent(time.Second), sleeping)
		if took := time.Since(b.begun); took != relied || !errors.Is(err, lease.ErrLost) {
			t.Errorf("after %v", took)
		}
		begun := time.Now()
		if text := err.Error(); !strings.Contains(text, "no text") || time.Since(begun) > 2*time.Second {
			t.Errorf("%q after %v", text, time.Since(begun))
		}
		l.Release = func(context.Context, lease.Checkpoint) error { return lease.ErrLost }
		err = lease.Run(t.Context(), l, func(context.Context) error { return deafError{until} }, sleeping)
		begun = time.Now()
		if text := err.Error(); !strings.Contains(text, "no text") || time.Since(begun) > 2*time.Second {
			t.Errorf("of the work: %q after %v", text, time.Since(begun))
		}
		close(until)
	})
	for name, l := range map[string]lease.Lease{
		"refused": {Renew: keeps, Release: func(context.Context, lease.Checkpoint) error {
			return fmt.Errorf("%w: %s", lease.ErrLost, strings.Repeat("x", 1<<20))
		}},
		"the outcome": {Renew: keeps, Release: func(context.Context, lease.Checkpoint) error { return lease.ErrLost }},
	} {
		bubble(t, name, func(t *testing.T) {
			err := lease.Run(t.Context(), l, func(context.Context) error { return errors.New(strings.Repeat("x", 1<<20)) })
			if n := len(err.Error()); n > 1<<18 || !errors.Is(err, lease.ErrLost) {
				t.Errorf("a text of %d bytes", n)
			}
		})
	}
}
