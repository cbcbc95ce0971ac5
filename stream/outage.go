package stream

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// An OutageError describes an outage: a period in which an event stream has no connection, or only connections that
// were lost before anything came on them. It ends with a chunk, or with a connection that stayed open for the idle
// limit. The Report of [Notifications] gets one at each step of an outage, and Read returns one if the stream was given
// up because it could not be reopened within GiveUp.
type OutageError struct {
	Cause    error         // why the stream was lost: a *SilenceError, another *timeout.Error, the error of a read, or io.ErrUnexpectedEOF if the stream ended
	Elapsed  time.Duration // time since the stream was lost
	Attempts int           // number of attempts to reopen it so far
	Err      error         // error of the last attempt: the error of RoundTrip, a *ReopenError, or why its connection was lost; nil if there was no attempt or it succeeded
	Next     time.Duration // time until the next attempt; 0 if there is a connection or no further attempt
}

// Error includes the elapsed time, the number of attempts and the error of the last one. Before the first attempt, and
// after the one that has succeeded, it says that instead, and why the stream was lost.
func (e *OutageError) Error() string {
	after := human.Duration(e.Elapsed)
	switch {
	case e.Err != nil:
		return fmt.Sprintf("stream: not reopened within %v, attempts: %d: %s", after, e.Attempts, texts.Part(e.Err))
	case e.Attempts > 0:
		return fmt.Sprintf("stream: reopened after %v, attempts: %d; it was lost: %s", after, e.Attempts, texts.Part(e.Cause))
	}
	return "stream: lost: " + texts.Part(e.Cause)
}

// Unwrap returns the error of the last attempt, if it has one, and the reason why the stream was lost.
func (e *OutageError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Cause}, func(err error) bool { return err == nil })
}

// Timeout returns true, as for every error of a limit.
func (e *OutageError) Timeout() bool { return true }

// outage keeps and reports the state of one outage.
type outage struct {
	OutageError
	since  time.Time // zero if there is none
	limit  time.Duration
	hook   func(context.Context, *OutageError)
	logger *slog.Logger
	server string
}

// lost begins an outage, or continues one if a connection was lost before anything came on it.
func (o *outage) lost(cause error) {
	if o.since.IsZero() {
		o.since, o.OutageError = time.Now(), OutageError{Cause: cause}
		return
	}
	o.Err = cause
}

// over ends the outage.
func (o *outage) over() { o.since = time.Time{} }

// spent reports whether the attempt that has just failed was the last.
func (o *outage) spent() bool {
	o.Elapsed = time.Since(o.since)
	return o.limit > 0 && o.Attempts > 0 && o.Elapsed >= o.limit
}

// wait returns how long to wait for the next attempt if the back-off asks for d: the last attempt
// begins when the limit is reached. An outage that reaches its limit without an attempt, because
// nothing could run, still gets one.
func (o *outage) wait(d time.Duration) time.Duration {
	if o.limit > 0 {
		d = min(d, max(o.limit-time.Since(o.since), 0))
	}
	return d
}

// report calls the hook and logs.
func (o *outage) report(ctx context.Context, level slog.Level, msg string) {
	o.Elapsed = time.Since(o.since)
	if o.hook != nil {
		now := o.OutageError
		o.hook(ctx, &now)
	}
	o.log(ctx, level, msg)
}

func (o *outage) log(ctx context.Context, level slog.Level, msg string) {
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
