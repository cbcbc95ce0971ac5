package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
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

// What is nil in the program's text is a *ConfigError, and a nil option is none.
func TestNilArguments(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for name, call := range map[string]func(){
		//lint:ignore SA1012 that is the mistake that the test makes
		"context":  func() { _ = timeout.Run(nil, nothing) },
		"function": func() { _ = timeout.Run(context.Background(), nil) },
		"value":    func() { _, _ = timeout.Do[int](context.Background(), nil) },
	} {
		if bad, ok := recovered(call).(*timeout.ConfigError); !ok || bad.Value != "nil" {
			t.Errorf("%s: panics with %v", name, bad)
		}
	}
	if err := timeout.Run(context.Background(), nothing, nil); err != nil {
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
						if m.Count() != counted || !pulse.Of(ctx).LastTime().Equal(began) {
							t.Errorf("1ns before its end the burst is over: %d more beats, the last %v after its beginning", m.Count()-counted, pulse.Of(ctx).LastTime().Sub(began))
						}
						time.Sleep(time.Nanosecond)
						synctest.Wait()
						m.Beat()
						if m.Count() != counted+1 || pulse.Of(ctx).LastTime().Sub(began) != time.Millisecond {
							t.Errorf("at its end the burst goes on: %d more beats, the last %v after its beginning", m.Count()-counted, pulse.Of(ctx).LastTime().Sub(began))
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
