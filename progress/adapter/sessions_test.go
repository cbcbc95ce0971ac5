package adapter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// The calls of a session are aborted with it, and no others.
func TestSessions(t *testing.T) {
	var s adapter.Sessions
	s.Abort("none", nil, toolcall.ErrDisconnected)
	first, release1 := s.Join(t.Context(), "a", nil)
	second, release2 := s.Join(t.Context(), "a", nil)
	other, release3 := s.Join(t.Context(), "b", nil)
	over, release4 := s.Join(t.Context(), "a", nil)
	release4()
	if over.Err() == nil || errors.Is(context.Cause(over), toolcall.ErrDisconnected) {
		t.Errorf("a context that was released: %v", context.Cause(over))
	}
	s.Abort("a", nil, toolcall.ErrDisconnected)
	for _, ctx := range []context.Context{first, second} {
		if context.Cause(ctx) != toolcall.ErrDisconnected {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	}
	if other.Err() != nil {
		t.Error("another session's call was aborted")
	}
	one, release6 := s.Join(t.Context(), "c", "1")
	two, release7 := s.Join(t.Context(), "c", int64(1))
	s.Abort("b", "1", toolcall.ErrStopped)
	if s.Abort("c", "1", toolcall.ErrStopped); context.Cause(one) != toolcall.ErrStopped || two.Err() != nil || other.Err() != nil {
		t.Errorf("one request: %v, %v", context.Cause(one), context.Cause(two))
	}
	later, release5 := s.Join(t.Context(), "a", nil)
	if later.Err() != nil {
		t.Error("a later call was aborted")
	}
	for _, release := range []func(){release1, release2, release3, release4, release5, release6, release7} {
		release()
	}
	caller, cancel := context.WithCancel(t.Context())
	ctx, release := s.Join(caller, "a", nil)
	cancel()
	if ctx.Err() == nil {
		t.Error("the caller's end is not seen")
	}
	release()
}

// The cancel of a call while many others run, in as many sessions and in the same one.
func BenchmarkAbort(b *testing.B) {
	for name, session := range map[string]func(i int) any{"sessions": func(i int) any { return i }, "session": func(int) any { return "" }} {
		b.Run(name, func(b *testing.B) {
			var s adapter.Sessions
			for i := range 10_000 {
				_, release := s.Join(b.Context(), session(i), int64(i))
				defer release()
			}
			for b.Loop() {
				s.Abort(session(5000), int64(5000), toolcall.ErrStopped)
			}
		})
	}
}
