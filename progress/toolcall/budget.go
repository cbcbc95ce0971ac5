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

// A bound holds the limits of a call, cut to the budget that the client has sent (SPEC 18.4), so that an answer with
// partial results arrives before the client gives up. A budget makes limits shorter, and never longer.
type bound struct {
	limits      timeout.Config
	interval    time.Duration // of the notifications
	total, idle *budgetError  // why the limit was cut; nil if the budget has not changed it
}

// bounded returns limits cut to the budget b. heard says whether the client receives the progress of the call.
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
	if limits.Total > 0 { // adjusted here, so that no warning blames the operator for a contradiction
		limits.Idle = min(limits.Idle, limits.Total)
		if limits.Reserve >= limits.Total {
			limits.Reserve = limits.Total / 2
		}
	}
	if by.Idle > 0 { // with rarer notifications, the client would give up although the tool makes progress
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
	waits  time.Duration // how long the client waits
	silent bool          // waits is the longest time without progress
}

func (e *budgetError) Error() string {
	text := "the client's budget: it waits for " + human.Duration(e.waits).String()
	if e.silent {
		text += " without progress"
	}
	return text
}

// explain returns err or, if err reports a limit that the budget has set, a copy of it with the budget as its Cause.
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
	own := *stopped // a copy, because hooks and the logger may hold the original
	own.Cause = why
	return &own
}

// log returns the option for a logger that adds to each record the limits of the budget that were applied.
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

// attrsHandler adds attributes to each record. It does not use WithAttrs of the caller's handler, which might block
// before any limit applies to the call.
type attrsHandler struct {
	slog.Handler
	attrs []slog.Attr
}

func (h attrsHandler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(h.attrs...)
	return h.Handler.Handle(ctx, r)
}
