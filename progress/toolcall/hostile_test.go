package toolcall_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A hostileError does what the test wants in one of its methods.
type hostileError struct {
	at string
	do func()
}

func (e *hostileError) hit(at string) {
	if at == e.at {
		e.do()
	}
}
func (e *hostileError) Error() string { e.hit("Error"); return "hostile" }
func (e *hostileError) Is(error) bool { e.hit("Is"); return false }
func (e *hostileError) As(any) bool   { e.hit("As"); return false }
func (e *hostileError) Unwrap() error { e.hit("Unwrap"); return nil }

// SPEC 3.24: the methods of a tool's error are called under the tool's limits before anybody else calls them, who
// would have to wait. So the error of a call is one that can be asked.
func TestHostileErrors(t *testing.T) {
	for _, at := range []string{"Error", "Is", "As", "Unwrap"} {
		for how, do := range map[string]func(release chan struct{}){
			"block":  func(release chan struct{}) { <-release },
			"panic":  func(chan struct{}) { panic("hostile") },
			"Goexit": func(chan struct{}) { runtime.Goexit() },
		} {
			bubble(t, at+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				bad := &hostileError{at, func() { do(release) }}
				begun := time.Now()
				s := &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Total: time.Second, Grace: time.Second}}}
				_, err := toolcall.Do(t.Context(), s, toolcall.Call{Tool: "bad"}, func(context.Context) (int, error) { return 0, bad })
				if took := time.Since(begun); err == nil || err == error(bad) || took > 2*time.Second {
					t.Errorf("%T after %v", err, took)
				}
			})
		}
	}
}
