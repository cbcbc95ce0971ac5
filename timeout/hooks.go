package timeout

import (
	"context"
	"log/slog"
	"time"
)

// Hooks are called as an execution goes on, for metrics and traces. Any of them may
// be nil.
//
// They are called synchronously, with the function's context, which Finished, Abandoned
// and Returned find cancelled, and should return quickly: Started, Abandoned and
// Finished hold up the caller, Returned the goroutine that was abandoned. A panic in a
// hook is recovered and logged. What a hook beats counts as the function's.
type Hooks struct {
	// Started is called before the function. An execution whose context was over from
	// the start has no Started and no Finished.
	Started func(context.Context, Snapshot)
	// NearIdle is called when 80 % of the idle limit has passed without a heartbeat,
	// once for each such gap. It runs on a goroutine of its own, and so may still run
	// beside Finished, or after Run has returned.
	NearIdle func(context.Context, Snapshot)
	// Finished is called when the outcome is known, right before Run returns or
	// panics, exactly once for each Started. It is also how to get the figures of a
	// run that succeeded.
	Finished func(context.Context, Snapshot)
	// Abandoned is called before Finished when the function has not returned within
	// the grace.
	Abandoned func(context.Context, Snapshot)
	// Returned is called when a function that was abandoned returns after all, with what
	// it returned as Err. If it panicked, that is a *PanicError.
	Returned func(context.Context, Snapshot)
}

// A Snapshot is what a hook learns: the state of the execution when the hook is called,
// or, in Abandoned and Finished, when the execution was stopped.
type Snapshot struct {
	Tool       string
	Limits     Config        // as enforced: normalised, Total cut to the caller's deadline, Grace filled in
	Elapsed    time.Duration // since the start
	SinceBeat  time.Duration // since the last heartbeat
	LongestGap time.Duration // the longest stretch without a heartbeat, the present one included, holds and stalls not
	Beats      uint64        // see heartbeat.Monitor.Count
	Detail     any           // the newest, see heartbeat.BeatWith; nil if there was none
	Stalls     int           // as in Error
	Err        error         // the outcome as Run returns it; with a *PanicError in it where Run panics
	Stack      []byte        // as in Error
}

// LogValue returns everything but the stack as a group.
func (s Snapshot) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("tool", s.Tool),
		slog.Duration("total", s.Limits.Total),
		slog.Duration("idle", s.Limits.Idle),
		slog.Duration("elapsed", s.Elapsed),
		slog.Duration("since_beat", s.SinceBeat),
		slog.Duration("longest_gap", s.LongestGap),
		slog.Uint64("beats", s.Beats),
		slog.Any("error", s.Err),
	}
	if s.Detail != nil {
		attrs = append(attrs, slog.String("last", textOf(s.Detail)))
	}
	if s.Stalls > 0 {
		attrs = append(attrs, slog.Int("stalls", s.Stalls))
	}
	return slog.GroupValue(attrs...)
}

// WithHooks calls h. Given more than once, all are called, in the order given.
func WithHooks(h Hooks) Option {
	return optionFunc(func(s *settings) { s.hooks = append(s.hooks, h) })
}
