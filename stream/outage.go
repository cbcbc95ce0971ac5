package stream

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// An Outage is the time in which an event stream has no connection, or only ones on which
// nothing came before they were lost again. It ends with a chunk, or with a connection that
// stayed open for the idle limit.
type Outage struct {
	Cause    error         // why the stream was lost: a *timeout.Error of [timeout.KindIdle], what a read returned, or io.ErrUnexpectedEOF if it ended
	Elapsed  time.Duration // since it was lost
	Attempts int           // to reopen it, so far
	Err      error         // of the last attempt: what RoundTrip returned, a *ReopenError, or why its connection was lost; nil if there was none or it succeeded
	Next     time.Duration // until the next attempt; 0 if there is a connection or no further attempt
}

// Hooks are called as [Notifications] reopens a stream, for metrics and traces. Any of them
// may be nil. They are called synchronously by Read, on its goroutine, with the context of
// the stream, which has the values of the request's; a panic in one is the reader's.
type Hooks struct {
	// Lost is called when a connection is over, for whatever reason, and another is to be
	// opened.
	Lost func(context.Context, Outage)
	// Failed is called after each attempt that opened none.
	Failed func(context.Context, Outage)
	// Reopened is called after the attempt that opened one.
	Reopened func(context.Context, Outage)
}

// outage keeps the account of one, and reports on it.
type outage struct {
	Outage
	since  time.Time // zero when there is none
	limit  time.Duration
	hooks  Hooks
	logger *slog.Logger
	server string
}

func newOutage(n *Notifications, req *http.Request) *outage {
	return &outage{limit: n.GiveUp, hooks: n.Hooks, logger: n.Logger, server: req.URL.Host + req.URL.Path}
}

// lost begins an outage, or goes on with one in which a connection has come to nothing.
func (o *outage) lost(cause error) {
	if o.since.IsZero() {
		o.since, o.Outage = time.Now(), Outage{Cause: cause}
		return
	}
	o.Err = cause
}

// over ends it.
func (o *outage) over() { o.since = time.Time{} }

// spent says whether an attempt that has failed was the last.
func (o *outage) spent() bool {
	o.Elapsed = time.Since(o.since)
	return o.limit > 0 && o.Attempts > 0 && o.Elapsed >= o.limit
}

// wait is how long to wait for the next attempt, where the back-off asks for d: the last one
// is made when the limit is reached. An outage that is over its limit without an attempt,
// because nothing could run, has one.
func (o *outage) wait(d time.Duration) time.Duration {
	if o.limit > 0 {
		d = min(d, max(o.limit-time.Since(o.since), 0))
	}
	return d
}

// report calls the hook and logs.
func (o *outage) report(ctx context.Context, hook func(context.Context, Outage), level slog.Level, msg string) {
	o.Elapsed = time.Since(o.since)
	if hook != nil {
		hook(ctx, o.Outage)
	}
	if o.logger == nil || !o.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("server", o.server), slog.Duration("elapsed", human.Duration(o.Elapsed)), slog.Int("attempts", o.Attempts), slog.Any("cause", o.Cause),
	}
	if o.Err != nil {
		attrs = append(attrs, slog.Any("error", o.Err))
	}
	if o.Next > 0 {
		attrs = append(attrs, slog.Duration("next", human.Duration(o.Next)))
	}
	o.logger.LogAttrs(ctx, level, msg, attrs...)
}
