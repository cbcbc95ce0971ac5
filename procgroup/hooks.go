package procgroup

import (
	"context"
	"log/slog"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithHooks calls h as the command goes on, for metrics and traces: Started right before
// it is started, NearIdle if it has an idle limit of its own, and Finished once for each
// Started, when the result is there and right before Wait returns. The Err that Finished
// gets is that of Wait; the rest of its Snapshot is as it was when the command ended or
// was stopped. Abandoned and Returned are not called, because no command is abandoned.
// Given more than once, all are called, in the order given.
func WithHooks(h timeout.Hooks) Option {
	return optionFunc(func(s *settings) { s.hooks = append(s.hooks, h) })
}

// WithLogger logs to l what [timeout.WithLogger] does for an execution, such as a timeout
// or an abort, what the processes were doing when a limit fired, and, as a warning, what
// the end of the command left to be desired: survivors, a stream that somebody still holds,
// output that cmd.Stdout or cmd.Stderr did not get. Without this option, or with nil,
// nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(s *settings) { s.log = l })
}

type hook = func(context.Context, timeout.Snapshot)

// engineHooks are those of the execution. Its end is not yet that of the call.
func (p *Process) engineHooks() timeout.Hooks {
	if len(p.hooks) == 0 {
		return timeout.Hooks{}
	}
	return timeout.Hooks{
		Started: func(ctx context.Context, s timeout.Snapshot) {
			p.observe(ctx, s, func(h *timeout.Hooks) hook { return h.Started })
		},
		NearIdle: func(ctx context.Context, s timeout.Snapshot) {
			p.observe(ctx, s, func(h *timeout.Hooks) hook { return h.NearIdle })
		},
		Finished: func(ctx context.Context, s timeout.Snapshot) {
			p.finished = func() {
				s.Err = p.err
				p.observe(ctx, s, func(h *timeout.Hooks) hook { return h.Finished })
			}
		},
	}
}

func (p *Process) observe(ctx context.Context, s timeout.Snapshot, which func(*timeout.Hooks) hook) {
	s.Limits.Grace = p.grace()
	for i := range p.hooks {
		if fn := which(&p.hooks[i]); fn != nil {
			capture.Guard(func() { fn(ctx, s) }, func(err error) {
				p.logAttrs(slog.LevelError, "hook panicked", slog.Any("error", err))
			})
		}
	}
}

// report tells the logger and the hooks that the call is over.
func (p *Process) report() {
	if p.result != nil {
		p.logLeft(p.result)
	}
	if p.finished != nil {
		p.finished()
	}
}

// logLeft logs what the end of the command left to be desired, if anything.
func (p *Process) logLeft(r *Result) {
	var attrs []slog.Attr
	if len(r.Survivors) > 0 {
		attrs = append(attrs, slog.Any("survivors", r.Survivors))
	}
	if r.PipeHeld && !p.orphans {
		attrs = append(attrs, slog.Bool("pipe_held", true))
	}
	if r.Unwritten > 0 {
		attrs = append(attrs, slog.Int64("unwritten", r.Unwritten))
	}
	if attrs != nil {
		p.logAttrs(slog.LevelWarn, "command left something behind", append(attrs, slog.Any("error", p.err))...)
	}
}

func (p *Process) logAttrs(level slog.Level, msg string, attrs ...slog.Attr) {
	if p.log == nil {
		return
	}
	capture.Guard(func() {
		p.log.LogAttrs(p.caller, level, msg, append([]slog.Attr{slog.String("tool", p.name)}, attrs...)...)
	}, func(error) {}) // a handler that panics must not end the process
}
