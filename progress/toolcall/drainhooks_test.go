package toolcall_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.22, 3.24: a hook Closing that blocks, of a call or of an execution within a tool, keeps a shutdown from
// nothing: all tools are told, and aborted when it is time, and Shutdown keeps to its ctx.
func TestShutdownDespiteHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := timeout.WithHooks(timeout.Hooks{Closing: func(context.Context, timeout.Snapshot) { <-release }})
		limits := timeout.Config{Grace: time.Second}
		var drain toolcall.Drain
		var told, aborted atomic.Int32
		tool := func(ctx context.Context) error {
			<-timeout.Closing(ctx)
			told.Add(1)
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), toolcall.ErrShutdown) {
				aborted.Add(1)
			}
			return ctx.Err()
		}
		for _, c := range []struct {
			opts []timeout.Setting
			tool func(context.Context) error
		}{
			{[]timeout.Setting{stuck}, tool},
			{nil, func(ctx context.Context) error { return timeout.Run(ctx, tool, limits, stuck) }},
			{nil, tool},
		} {
			go func() {
				_, _ = toolcall.Do(drain.Context(t.Context()), &toolcall.Settings{Limits: &limits, Options: c.opts}, toolcall.Call{Tool: "t"},
					func(ctx context.Context) (int, error) { return 0, c.tool(ctx) })
			}()
		}
		synctest.Wait()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), toolcall.ShutdownLimit+5*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, func() {
			if told.Load() != 3 {
				t.Errorf("%d tools have been told", told.Load())
			}
		})
		if err := drain.Shutdown(ctx); err != nil || time.Since(begun) > toolcall.ShutdownLimit+5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if aborted.Load() != 3 {
			t.Errorf("%d tools were aborted", aborted.Load())
		}
		close(release)
	})
}
