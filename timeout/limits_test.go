package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errTool = errors.New("tool failed")

// bubble runs f with a fake clock; it fails the test if f leaves a goroutine behind. What
// other tests have left to run on a busy machine would keep f's stacks from being taken.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	settled(t, 150)
	synctest.Test(t, f)
}

// stopped returns err as the outcome of an execution that was stopped.
func stopped(t *testing.T, err error) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *timeout.Error", err, err)
	}
	return e
}

// sameOutcome compares but for the stack, which is another test's.
func sameOutcome(t *testing.T, got error, want *timeout.Error) {
	t.Helper()
	e := stopped(t, got)
	if diff := cmp.Diff(*want, *e, cmpopts.IgnoreFields(timeout.Error{}, "Stack", "Limits"), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// SPEC 3.15: the context goes on being safe, and ends as under context.WithTimeout.
func TestContextAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ctx context.Context
		if err := timeout.Run(t.Context(), func(c context.Context) error { ctx = c; return nil }); err != nil {
			t.Fatal(err)
		}
		m := heartbeat.FromContext(ctx)
		before := m.Last()
		time.Sleep(time.Second)
		heartbeat.Beat(ctx)
		heartbeat.BeatWith(ctx, "late")
		heartbeat.Hold(ctx)()
		if m.Count() != 0 || !m.Last().Equal(before) {
			t.Errorf("count %d, last %v: beats after the end count", m.Count(), m.Last())
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		for name, c := range map[string]context.Context{"context": ctx, "derived": child} {
			if c.Err() != context.Canceled || context.Cause(c) != context.Canceled {
				t.Errorf("%s: %v, because of %v; want %v", name, c.Err(), context.Cause(c), context.Canceled)
			}
		}
		if err := timeout.Run(ctx, func(context.Context) error { t.Error("started"); return nil }); !errors.Is(err, timeout.ErrAborted) {
			t.Errorf("Run under an ended execution: %v", err)
		}
	})
}

func TestNilArguments(t *testing.T) {
	for name, call := range map[string]func(){
		//lint:ignore SA1012 that is the mistake that the test makes
		"context":        func() { _ = timeout.Run(nil, func(context.Context) error { return nil }) },
		"function":       func() { _ = timeout.Run(context.Background(), nil) },
		"function of Do": func() { _, _ = timeout.Do[int](context.Background(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
	if err := timeout.Run(context.Background(), func(context.Context) error { return nil }, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

// SPEC 3.5: beats are absorbed for a millisecond, from the one that begins the burst, and then
// each counts again, whatever the timer was set for, if at all.
func TestBurst(t *testing.T) {
	for name, limits := range map[string]timeout.Config{
		"no limits": {},
		"a total":   {Total: time.Hour},
		"both":      {Total: time.Hour, Idle: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					m := heartbeat.FromContext(ctx)
					for range 3 {
						time.Sleep(10 * time.Second) // the burst is not at the start of the run
						for range 1000 {
							m.Beat()
						}
						began, counted := time.Now(), m.Count()
						time.Sleep(time.Millisecond - 1)
						m.Beat()
						if m.Count() != counted || !m.Last().Equal(began) {
							t.Errorf("1ns before its end the burst is over: %d more beats, the last %v after its beginning", m.Count()-counted, m.Last().Sub(began))
						}
						time.Sleep(time.Nanosecond)
						synctest.Wait()
						m.Beat()
						if m.Count() != counted+1 || m.Last().Sub(began) != time.Millisecond {
							t.Errorf("at its end the burst goes on: %d more beats, the last %v after its beginning", m.Count()-counted, m.Last().Sub(began))
						}
					}
					return nil
				}, limits)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
