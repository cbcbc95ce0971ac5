package natsworker

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// options returns the options of the execution of a message.
func (w *worker) options(d *delivery) []timeout.Option {
	name, opts := w.named(d.Subject())
	opts = append(opts, timeout.WithName(name))
	if w.Logger != nil {
		opts = append(opts, timeout.WithLogger(slog.New(deliveryHandler{w.Logger.Handler(), d})))
	}
	return opts
}

// deliveryHandler adds attributes that identify a delivery to each record. It does not use WithAttrs of the caller's
// handler, which may block, for each message.
type deliveryHandler struct {
	slog.Handler
	delivery *delivery
}

func (h deliveryHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Add(h.delivery.logAttrs()...)
	return h.Handler.Handle(ctx, r)
}

// named returns the name of the execution of a message with the given subject, and the options for its limits.
func (w *worker) named(subject string) (name string, opts []timeout.Option) {
	name = w.info.Name
	if p := w.Policy.Current(); w.Policy != nil {
		best := ""
		for pattern := range p.Tools {
			if matches(pattern, subject) && (best == "" || narrower(pattern, best)) {
				best = pattern
			}
		}
		if best != "" {
			return best, p.For(best, 0)
		}
	}
	p := w.Policy.Current()
	if limits := cmp.Or(w.Limits, p.Default); limits != nil {
		opts = append(opts, *limits)
	}
	if p.ObserveOnly {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return name, opts
}

// matches reports whether a subject matches a pattern of NATS: * stands for one token, and > at the end for one or
// more.
func matches(pattern, subject string) bool {
	for {
		p, restOfPattern, more := strings.Cut(pattern, ".")
		s, rest, tokens := strings.Cut(subject, ".")
		switch {
		case p == ">" && !more:
			return true
		case p != "*" && p != s || more != tokens:
			return false
		case !more:
			return true
		}
		pattern, subject = restOfPattern, rest
	}
}

// narrower reports whether pattern a takes precedence over pattern b, which matches the same subject. At the first
// token in which they differ, a literal takes precedence over *, and * over >.
func narrower(a, b string) bool {
	rank := func(token string) int { return strings.Index("*>", token) + 1 }
	for a != b {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if x != y {
			return rank(x) < rank(y)
		}
	}
	return false
}
