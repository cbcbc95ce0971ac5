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
// were lost before anything came on them. An outage ends with a chunk, or with a connection that stayed open for the
// idle limit. The Report of [Notifications] gets an OutageError at each step of an outage, and Read returns one if
// the stream could not be reopened within GiveUp.
type OutageError struct {
	// Cause is the error by which the stream was lost: a *SilenceError, another error of a Read of the connection, or
	// io.ErrUnexpectedEOF if the stream ended.
	Cause    error
	Elapsed  time.Duration // time since the stream was lost
	Attempts int           // number of attempts to reopen the stream so far
	// Err is the error of the last attempt: the error of RoundTrip, a *ReopenError, or the error by which its
	// connection was lost. It is nil if there was no attempt or the attempt succeeded.
	Err error
	// Next is the time until the next attempt. It is 0 if the attempt begins at once, and if there is a connection or no
	// further attempt.
	Next time.Duration
}

// Error returns a text with the elapsed time, the number of attempts and the error of the last attempt. If there is
// no such error, the text says whether the stream is lost or reopened, and why it was lost.
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

// Unwrap returns Err and Cause, without those that are nil.
func (e *OutageError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Cause}, func(err error) bool { return err == nil })
}

// Timeout returns true: an OutageError is the error of a limit, GiveUp.
func (e *OutageError) Timeout() bool { return true }

// outage records and reports the outages of one stream.
type outage struct {
	OutageError
	since  time.Time // start of the present outage; zero if there is none
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

// spent reports whether GiveUp has passed and there was an attempt, so that the outage has to end the stream. It sets
// Elapsed.
func (o *outage) spent() bool {
	o.Elapsed = time.Since(o.since)
	return o.limit > 0 && o.Attempts > 0 && o.Elapsed >= o.limit
}

// wait returns the delay before the next attempt: d, the delay of the Backoff, but no more than the time left of
// GiveUp, at the end of which the last attempt begins. An outage that reaches GiveUp without an attempt, because the
// process could not run, still gets one.
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
