package toolcall

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// This file is about the time that the client says it has (SPEC 18.4): the call is stopped so early that its answer
// arrives, with what there is. It makes limits shorter, and never longer.

// budget returns what the client of a call says of the time for which it waits. What cannot be read is ignored, and is
// logged once.
func (s *Settings) budget(meta map[string]any) policy.Budget {
	b, err := policy.ReadBudget(meta)
	if err != nil && atomic.SwapUint32(&s.ignored, 1) == 0 {
		log := s.Logger
		if log == nil {
			log = s.Policy.Current().Logger
		}
		if log != nil { // beside the call, which no limit bounds yet
			texts.Ask(func() {
				log.LogAttrs(context.Background(), slog.LevelWarn, "the budget that a client sends is ignored", slog.Any("error", err))
			})
		}
	}
	return b
}

// bounded returns the limits of a call within a budget, and the interval of its notifications.
func bounded(limits timeout.Config, b policy.Budget, heard bool, interval time.Duration) (timeout.Config, time.Duration) {
	by, grace := b.Answer(heard)
	limits, _ = limits.Normalize()
	cut := policy.Budget{Left: limits.Total, Idle: limits.Idle}.Shorter(by)
	limits.Total, limits.Idle = cut.Left, cut.Idle
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
	return limits, interval
}
