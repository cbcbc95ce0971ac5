package notify

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Watch reports to the supervisor of this process, four times in WATCHDOG_USEC, that the process works. It sends no
// report while an execution that began after the call has been silent for its idle limit, unless the idle check of
// some execution is held, as when a person is asked. A stopped execution counts until its function has returned, or
// beats again. So the supervisor ends a program with a stuck tool that cannot be stopped, but not a program with a
// tool that only takes longer than its total. Executions whose limits are only observed, and executions without an
// idle limit, do not count.
//
// The first message is sent at once. stop ends the messages without waiting for one in progress; calling stop again
// does nothing. If NOTIFY_SOCKET or WATCHDOG_USEC is not set, or WATCHDOG_PID is that of another process, Watch does
// nothing. A program calls Watch once, in main.
func Watch() (stop func()) {
	s, ok := sdnotify.TheSupervisor()
	if !ok || s.Within == 0 {
		return func() {}
	}
	unwatch := timeout.Watch(timeout.Hooks{}) // so that timeout.Running lists the executions
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ticker := time.NewTicker(max(s.Within/4, time.Millisecond))
		defer ticker.Stop()
		for ctx.Err() == nil {
			if alive(timeout.Running()) {
				say(s, sdnotify.Message{Beat: true})
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		unwatch()
	}
}

// alive reports whether the idle check of one of the executions is held or, if none is held, whether no execution has
// exceeded its idle limit. An execution that has ended, or whose limits are only observed, counts as one without an
// idle limit.
func alive(running []*timeout.Execution) bool {
	exceeded := false
	for _, x := range running {
		s := x.Snapshot()
		if s.State == timeout.StateHeld {
			return true
		}
		exceeded = exceeded || s.Limits.Idle > 0 && !s.ObserveOnly && s.State != timeout.StateEnded && s.SinceBeat >= s.Limits.Idle
	}
	return !exceeded
}
