package toolcall

import (
	"context"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// This file is about the time that the client says it has (SPEC 18.4): the call is stopped so early that its answer
// arrives, with what there is. It makes limits shorter, and never longer.

// A bound holds the limits of a call, cut to a client's budget.
type bound struct {
	limits      timeout.Config
	interval    time.Duration // of the notifications
	total, idle *budgetError  // nil where the limit is the tool's own
}

// bounded returns the limits of a call within a budget.
func bounded(limits timeout.Config, b policy.Budget, heard bool, interval time.Duration) (cut bound) {
	by, grace := b.Answer(heard)
	limits, _ = limits.Normalize()
	own := policy.Budget{Left: limits.Total, Idle: limits.Idle}
	within := own.Shorter(by)
	limits.Total, limits.Idle = within.Left, within.Idle
	if limits.Total != own.Left {
		cut.total = &budgetError{waits: b.Left}
		if !heard {
			cut.total.waits = b.Shorter(policy.Budget{Left: b.Idle}).Left
		}
	}
	if limits.Idle != own.Idle {
		cut.idle = &budgetError{waits: b.Idle, silent: true}
	}
	if limits.Grace == 0 {
		limits.Grace = timeout.DefaultGrace
	}
	if limits.Grace > grace {
		limits.Grace = max(grace, 1)
	}
	if limits.Total > 0 { // no mistake of the operator's that a warning is due for
		limits.Idle = min(limits.Idle, limits.Total)
		if limits.Reserve >= limits.Total {
			limits.Reserve = limits.Total / 2
		}
	}
	if by.Idle > 0 { // a client that hears less often than that gives a tool up that beats
		if interval == 0 {
			interval = heartbeat.DefaultInterval
		}
		interval = min(interval, by.Idle)
	}
	cut.limits, cut.interval = limits, interval
	return cut
}

// A budgetError is the Cause of a stop by a limit that the client's budget has set.
type budgetError struct {
	waits  time.Duration
	silent bool // without progress
}

func (e *budgetError) Error() string {
	text := "the client's budget: it waits for " + human.Duration(e.waits).String()
	if e.silent {
		text += " without progress"
	}
	return text
}

// explain returns the error of the call, with the budget as its Cause if that has set the limit.
func (b *bound) explain(err error) error {
	stopped, ok := err.(*timeout.Error)
	if !ok || stopped.Cause != nil {
		return err
	}
	var why *budgetError
	switch {
	case stopped.Kind == timeout.ErrTotal && stopped.Limit == b.limits.Total:
		why = b.total
	case stopped.Kind == timeout.ErrIdle:
		why = b.idle
	}
	if why == nil {
		return err
	}
	own := *stopped // the hooks and the log have it, too
	own.Cause = why
	return &own
}

// log returns a logger whose records say what the budget is, as far as it has set a limit.
func (b *bound) log(to *slog.Logger) timeout.Setting {
	if to == nil || b.total == nil && b.idle == nil {
		return timeout.WithLogger(to)
	}
	var attrs []slog.Attr
	if b.total != nil {
		attrs = append(attrs, slog.Duration("client_waits", b.total.waits))
	}
	if b.idle != nil {
		attrs = append(attrs, slog.Duration("client_waits_without_progress", b.idle.waits))
	}
	return timeout.WithLogger(slog.New(attrsHandler{to.Handler(), attrs}))
}

// attrsHandler adds attributes to each record. WithAttrs of the caller's handler, called before the call has a limit,
// would have to be waited for.
type attrsHandler struct {
	slog.Handler
	attrs []slog.Attr
}

func (h attrsHandler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(h.attrs...)
	return h.Handler.Handle(ctx, r)
}
