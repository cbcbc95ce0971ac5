package lease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

const (
	duration = time.Minute
	every    = duration / 6
	grace    = 6 * time.Second
	relied   = duration - duration/6 // with this grace, the sixth is longer
)

var (
	errAway  = errors.New("the engine is away")
	errWork  = errors.New("the work has failed")
	sleeping = timeout.Config{Grace: grace}
)

// A book has what an engine was told, and when.
type book struct {
	mu    sync.Mutex
	begun time.Time
	lines []string
}

func (b *book) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf("%v ", time.Since(b.begun))+fmt.Sprintf(format, args...))
}

func (b *book) is(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(want, b.lines); diff != "" {
		t.Errorf("what the engine was told (-want +got):\n%s", diff)
	}
}

// leased returns a lease whose engine answers with the errors of renew, the last of them again and again, and the book of
// what it is told.
func leased(renew ...error) (lease.Lease, *book) {
	b := &book{begun: time.Now()}
	return lease.Lease{
		Duration: duration, Token: 7,
		Renew: func(_ context.Context, s lease.Checkpoint) (err error) {
			b.note("renew %v %v", s.Token, s.Detail)
			if len(renew) > 0 {
				if err = renew[0]; len(renew) > 1 {
					renew = renew[1:]
				}
			}
			return err
		},
		Release: func(_ context.Context, s lease.Checkpoint) error {
			b.note("release %v %v %v", s.Token, s.Detail, s.Err)
			return nil
		},
	}, b
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func silent(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// waits works until it is told to end.
func waits(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

// SPEC 13.5. Guarantees 1 and 2: a timer renews, whatever the work does, until it has returned or been abandoned.
func TestRenewedByTimer(t *testing.T) {
	renewals := []string{"10s renew 7 <nil>", "20s renew 7 <nil>", "30s renew 7 <nil>"}
	bubble(t, "silent", func(t *testing.T) {
		l, b := leased()
		if err := lease.Run(t.Context(), l, silent(35*time.Second), sleeping); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		b.is(t, append(renewals, "35s release 7 <nil> <nil>")...)
	})
	bubble(t, "held", func(t *testing.T) {
		l, b := leased()
		err := lease.Run(t.Context(), l, func(ctx context.Context) error {
			defer heartbeat.Hold(ctx)()
			return silent(35 * time.Second)(ctx)
		}, timeout.Config{Idle: time.Second, Grace: grace})
		if err != nil {
			t.Error(err)
		}
		b.is(t, append(renewals, "35s release 7 <nil> <nil>")...)
	})
	bubble(t, "abandoned", func(t *testing.T) {
		l, b := leased()
		err := lease.Run(t.Context(), l, silent(time.Hour), timeout.Config{Idle: 25 * time.Second, Grace: 10 * time.Second})
		var stopped *timeout.Error
		if !errors.As(err, &stopped) || !stopped.Abandoned || stopped.Kind != timeout.ErrIdle {
			t.Errorf("got %v, want an abandoned function", err)
		}
		time.Sleep(2 * time.Hour)
		b.is(t, append(renewals, fmt.Sprint("35s release 7 <nil> ", err))...)
	})
	bubble(t, "no end", func(t *testing.T) {
		l, b := leased(errAway)
		l.Duration = 0
		l.Renew = func(context.Context, lease.Checkpoint) error { b.note("renew"); return nil }
		if err := lease.Run(t.Context(), l, silent(25*time.Second), sleeping); err != nil {
			t.Error(err)
		}
		b.is(t, "10s renew", "20s renew", "25s release 7 <nil> <nil>")
	})
	bubble(t, "every", func(t *testing.T) {
		for every, times := range map[time.Duration]int{5 * time.Second: 11, time.Hour: 2} {
			l, b := leased()
			l.Every = every
			_ = lease.Run(t.Context(), l, silent(duration-time.Second), sleeping)
			if len(b.lines) != times+1 {
				t.Errorf("every %v: got %q, want %d renewals", every, b.lines, times)
			}
		}
	})
	bubble(t, "every few nanoseconds, SPEC 2.13", func(t *testing.T) {
		l, b := leased()
		l.Every, l.Duration = 10, 0
		_ = lease.Run(t.Context(), l, silent(3*time.Millisecond+time.Microsecond), sleeping)
		b.is(t, "1ms renew 7 <nil>", "2ms renew 7 <nil>", "3ms renew 7 <nil>", "3.001ms release 7 <nil> <nil>")
	})
}

// SPEC 13.5. Guarantees 3 and 5: the work is told early enough, and nothing is sent afterwards.
func TestLost(t *testing.T) {
	for _, row := range []struct {
		name  string
		grace time.Duration
		renew []error
		told  time.Duration
	}{
		{"no renewal succeeds", grace, []error{errAway}, relied},
		{"the third fails", grace, []error{nil, nil, errAway}, 2*every + relied},
		{"a longer grace", 20 * time.Second, []error{errAway}, duration - 20*time.Second - duration/20},
		{"a grace of more than half", time.Hour, []error{errAway}, duration / 2},
		{"the default grace", 0, []error{errAway}, min(relied, duration-timeout.DefaultGrace-duration/20)},
		{"the engine says so", grace, []error{nil, fmt.Errorf("no row: %w", lease.ErrLost)}, 2 * every},
	} {
		bubble(t, row.name, func(t *testing.T) {
			l, b := leased(row.renew...)
			var told, check time.Duration
			err := lease.Run(t.Context(), l, func(ctx context.Context) error {
				begun := time.Now()
				time.Sleep(row.told - 1)
				if err := errors.Join(lease.Check(ctx), ctx.Err()); err != nil {
					t.Errorf("told early: %v", err)
				}
				<-ctx.Done()
				told = time.Since(begun)
				if cause := context.Cause(ctx); !errors.Is(cause, lease.ErrLost) {
					t.Errorf("got the cause %v", cause)
				}
				if !errors.Is(lease.Check(ctx), lease.ErrLost) {
					check = 1
				}
				return nil
			}, timeout.Config{Grace: row.grace})
			if told != row.told || check != 0 {
				t.Errorf("told after %v, want %v; Check agrees: %v", told, row.told, check == 0)
			}
			if stopped, ok := err.(*timeout.Error); !ok || !errors.Is(err, lease.ErrLost) || stopped.Kind != timeout.ErrAborted {
				t.Errorf("got %v, want an abort by ErrLost", err)
			}
			lines := len(b.lines)
			time.Sleep(time.Hour)
			for _, line := range b.lines[lines:] {
				t.Errorf("sent after the loss: %s", line)
			}
			for _, line := range b.lines[:lines] {
				if at := sentAt(line); at > row.told {
					t.Errorf("sent after the loss: %s", line)
				}
			}
		})
	}
}

// sentAt returns the time of a line of a book.
func sentAt(line string) time.Duration {
	at, _, _ := strings.Cut(line, " ")
	d, err := time.ParseDuration(at)
	if err != nil {
		panic(err)
	}
	return d
}

// SPEC 13.5. Guarantee 3: a lease that is over before the work begins is lost. That the time counts from when a renewal
// was sent, and not from its answer, is a rule of the simulation.
func TestOverBeforeItBegins(t *testing.T) {
	bubble(t, "over before it begins", func(t *testing.T) {
		l, b := leased()
		for age, want := range map[time.Duration]error{relied - 1: nil, relied: lease.ErrLost} {
			l.Since, b.lines = time.Now().Add(-age), nil
			called := false
			err := lease.Run(t.Context(), l, func(context.Context) error { called = true; return nil }, sleeping)
			if err != want || called != (want == nil) {
				t.Errorf("after %v got %v, called: %v", age, err, called)
			}
			if want != nil {
				b.is(t)
			}
		}
	})
}

// SPEC 13.5. Guarantee 7: the newest detail goes with every write.
func TestNewestDetail(t *testing.T) {
	burst := func(outcome error) func(context.Context) error {
		return func(ctx context.Context) error {
			time.Sleep(every + time.Second)
			for page := 1; page <= 50; page++ {
				heartbeat.BeatWith(ctx, page)
			}
			if outcome == nil {
				<-ctx.Done()
			}
			return outcome
		}
	}
	bubble(t, "stopped after a burst", func(t *testing.T) {
		l, b := leased()
		l.Detail = "page 5"
		err := lease.Run(t.Context(), l, burst(nil), timeout.Config{Idle: 15 * time.Second, Grace: grace})
		b.is(t, "10s renew 7 page 5", "20s renew 7 50", "26s release 7 50 "+err.Error())
	})
	bubble(t, "without Release", func(t *testing.T) {
		l, b := leased(nil, errAway)
		l.Release = nil
		if err := lease.Run(t.Context(), l, burst(errWork), sleeping); err != errWork {
			t.Errorf("got %v", err)
		}
		b.is(t, "10s renew 7 <nil>", "11s renew 7 50")
	})
	bubble(t, "done without Release", func(t *testing.T) {
		l, b := leased()
		l.Release = nil
		if err := lease.Run(t.Context(), l, silent(every+1), sleeping); err != nil {
			t.Errorf("got %v", err)
		}
		b.is(t, "10s renew 7 <nil>")
	})
}

// SPEC 13.5. Guarantee 8.
func TestTriedAgain(t *testing.T) {
	bubble(t, "a renewal", func(t *testing.T) {
		l, b := leased(errAway, errAway, errAway, errAway, nil)
		if err := lease.Run(t.Context(), l, silent(27*time.Second), sleeping); err != nil {
			t.Error(err)
		}
		b.is(t, "10s renew 7 <nil>", "10.5s renew 7 <nil>", "11.5s renew 7 <nil>", "13.5s renew 7 <nil>", "16s renew 7 <nil>",
			"26s renew 7 <nil>", "27s release 7 <nil> <nil>")
	})
	for _, row := range []struct {
		name  string
		fails int
		err   error
		ctx   bool // ends while it is tried
		took  time.Duration
		says  error
	}{
		{name: "a release", fails: 2, err: errAway, took: 1500 * time.Millisecond},
		{name: "a release, as long as the lease lasts", fails: 1000, err: errAway, took: relied - time.Second, says: lease.ErrLost},
		{name: "a release that must not be repeated", fails: 1, err: fmt.Errorf("maybe: %w", lease.ErrLost), says: lease.ErrLost},
		{name: "a release of a worker that stops", fails: 1000, err: errAway, ctx: true, took: 6 * time.Second, says: lease.ErrUnconfirmed},
	} {
		bubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, _ := leased()
			tries := 0
			l.Release = func(context.Context, lease.Checkpoint) error {
				if tries++; tries <= row.fails {
					return row.err
				}
				return nil
			}
			var ended time.Time
			err := lease.Run(ctx, l, func(context.Context) error {
				time.Sleep(time.Second)
				if ended = time.Now(); row.ctx {
					time.AfterFunc(time.Second, cancel)
				}
				return errWork
			}, sleeping)
			if took := time.Since(ended); took != row.took {
				t.Errorf("took %v, want %v", took, row.took)
			}
			if !errors.Is(err, errWork) || row.says != nil && (!errors.Is(err, row.says) || !errors.Is(err, row.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// SPEC 13.5, 3.24. Guarantees 6, 9 and 10, for what an engine may do instead of answering.
func TestEngineMisbehaves(t *testing.T) {
	for how, act := range map[string]func(release <-chan struct{}){
		"block":  func(release <-chan struct{}) { <-release },
		"panic":  func(<-chan struct{}) { panic(errAway) },
		"goexit": func(<-chan struct{}) { runtime.Goexit() },
	} {
		bubble(t, "renew "+how, func(t *testing.T) {
			l, b := leased()
			release := make(chan struct{})
			l.Renew = func(context.Context, lease.Checkpoint) error { act(release); return nil }
			begun := time.Now()
			err := lease.Run(t.Context(), l, waits, sleeping)
			if told := time.Since(begun); told != relied || !errors.Is(err, lease.ErrLost) {
				t.Errorf("after %v: %v", told, err)
			}
			close(release)
			b.is(t)
		})
		bubble(t, "release "+how, func(t *testing.T) {
			l, _ := leased()
			release := make(chan struct{})
			l.Release = func(context.Context, lease.Checkpoint) error { act(release); return nil }
			begun := time.Now()
			err := lease.Run(t.Context(), l, silent(time.Second), sleeping)
			if took := time.Since(begun); took != relied || err == nil || how == "panic" && !errors.Is(err, errAway) {
				t.Errorf("after %v: %v", took, err)
			}
			close(release)
		})
		bubble(t, "renew while the work ends, "+how, func(t *testing.T) {
			l, b := leased()
			release := make(chan struct{})
			writing := false
			l.Renew = func(context.Context, lease.Checkpoint) error {
				writing = true
				defer func() { writing = false }()
				act(release)
				return nil
			}
			released := l.Release
			l.Release = func(ctx context.Context, s lease.Checkpoint) error {
				if writing {
					t.Error("two writes at a time")
				}
				return released(ctx, s)
			}
			time.AfterFunc(15*time.Second, func() { close(release) })
			if err := lease.Run(t.Context(), l, silent(every+time.Second), sleeping); err != nil {
				t.Error(err)
			}
			want := "11s"
			if how == "block" {
				want = "15s"
			}
			b.is(t, want+" release 7 <nil> <nil>")
		})
	}
}

// SPEC 13.5, 3.24. A write has a deadline, and a renewal that is on its way ends with the work.
func TestWritesEnd(t *testing.T) {
	bubble(t, "with the work", func(t *testing.T) {
		l, b := leased()
		l.Renew = func(ctx context.Context, _ lease.Checkpoint) error { <-ctx.Done(); return ctx.Err() }
		if err := lease.Run(t.Context(), l, silent(every+time.Second), sleeping); err != nil {
			t.Error(err)
		}
		b.is(t, "11s release 7 <nil> <nil>")
	})
	bubble(t, "with the lease", func(t *testing.T) {
		l, b := leased()
		end := b.begun.Add(relied)
		near := 0
		l.Renew = func(ctx context.Context, _ lease.Checkpoint) error {
			switch until, ok := ctx.Deadline(); {
			case !ok || until.After(end) || time.Until(until) > 5*time.Second:
				t.Errorf("at %v the deadline is %v", time.Since(b.begun), until.Sub(b.begun))
			case until.Equal(end):
				near++
			}
			return errAway
		}
		_ = lease.Run(t.Context(), l, waits, sleeping)
		if near == 0 {
			t.Error("no write was near the end of the lease")
		}
	})
	bubble(t, "where it has no end", func(t *testing.T) {
		l, _ := leased()
		l.Duration = 0
		release := make(chan struct{})
		l.Release = func(context.Context, lease.Checkpoint) error { <-release; return nil }
		begun := time.Now()
		if err := lease.Run(t.Context(), l, silent(time.Second), sleeping); err == nil || time.Since(begun) != 6*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		close(release)
	})
}

// SPEC 13.5. A panic of the function is its outcome, and a renewal is no sign of life of whoever runs the lease.
func TestAroundTheWork(t *testing.T) {
	bubble(t, "panic", func(t *testing.T) {
		l, b := leased()
		err := lease.Run(t.Context(), l, func(context.Context) error { panic(errWork) }, sleeping)
		if !errors.Is(err, errWork) {
			t.Errorf("got %v", err)
		}
		b.is(t, fmt.Sprint("0s release 7 <nil> ", err))
	})
	bubble(t, "aborted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, b := leased()
		time.AfterFunc(time.Second, cancel)
		err := lease.Run(ctx, l, waits, sleeping)
		b.is(t, fmt.Sprint("1s release 7 <nil> ", err))
	})
	bubble(t, "enclosing", func(t *testing.T) {
		l, _ := leased()
		l.Renew = func(ctx context.Context, _ lease.Checkpoint) error { heartbeat.Beat(ctx); return nil }
		begun := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error { return lease.Run(ctx, l, waits, sleeping) },
			timeout.Config{Idle: 25 * time.Second})
		if took := time.Since(begun); took != 25*time.Second || !errors.Is(err, timeout.ErrIdle) {
			t.Errorf("after %v: %v", took, err)
		}
	})
	t.Run("misuse", func(t *testing.T) {
		defer func() {
			if _, ok := recover().(*timeout.ConfigError); !ok {
				t.Error("no *timeout.ConfigError")
			}
		}()
		_ = lease.Run(t.Context(), lease.Lease{}, waits)
	})
	if err := lease.Check(t.Context()); err != nil {
		t.Errorf("outside a lease: %v", err)
	}
}
