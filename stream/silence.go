package stream

import (
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A SilenceError reports that a stream was stopped because it had gone silent. It wraps a [*timeout.Error] that has the
// exceeded limit, First or Idle, and the time since the stream or the request began; errors.Is finds [timeout.ErrIdle].
type SilenceError struct {
	// Events is the number of events that were signs of life or, if every chunk is a sign of life, the number of
	// chunks. If it is 0, the stream was stopped before the first of them, and otherwise after the last.
	Events int
	// Ignored is the number of chunks since the last sign of life that were no signs of life. It is above 0 if
	// keep-alives came, or a part of an event.
	Ignored int

	stop *timeout.Error
	unit string
}

// Error returns a text with the limit, whether the stream stalled before the first event or between events, and the
// number of events and the time in which they came.
func (e *SilenceError) Error() string {
	unit := e.unit
	if unit == "" {
		unit = "event"
	}
	phase := "between " + unit + "s"
	if e.Events == 0 {
		phase = "before the first " + unit
	}
	stop := e.why()
	text := fmt.Sprintf("stream: stalled for %v %s: %s in %v", human.Duration(stop.Limit), phase,
		plural(e.Events, unit), human.Duration(stop.Elapsed))
	if e.Ignored > 0 {
		text += ", then " + plural(e.Ignored, "chunk") + " that did not count"
	}
	return text
}

// Unwrap returns the *timeout.Error.
func (e *SilenceError) Unwrap() error { return e.why() }

func (e *SilenceError) why() *timeout.Error {
	if e.stop == nil { // created outside this package, for example in a test
		return &timeout.Error{Kind: timeout.ErrIdle}
	}
	return e.stop
}

// Timeout returns true: a SilenceError is the error of a limit.
func (e *SilenceError) Timeout() bool { return true }

// silent reports whether lost is itself an idle timeout, and does not only wrap one. It calls no method of lost, whose
// type may be Base's own.
func silent(lost error) bool {
	switch e := lost.(type) {
	case *SilenceError:
		return true
	case *timeout.Error: // from a Base that is a Transport, or similar
		return e.Kind == timeout.ErrIdle
	}
	return false
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// A count holds the fields of a SilenceError while the stream is running.
type count struct {
	signs, ignored int
	events         bool // whether signs are events, and not chunks
	silent         *SilenceError
}

// add counts a chunk with n signs of life.
func (c *count) add(n int) {
	c.signs += n
	if c.ignored++; n > 0 {
		c.ignored = 0
	}
}

// silence returns a SilenceError if err is the error of an idle limit, and a callerStop if the caller stopped the
// stream.
func (c *count) silence(err error) error {
	var stop *timeout.Error
	if !errors.As(err, &stop) || stop.Kind != timeout.ErrIdle {
		return byCaller(err)
	}
	if c.silent == nil {
		c.silent = &SilenceError{Events: c.signs, Ignored: c.ignored, stop: stop, unit: "chunk"}
		if c.events {
			c.silent.unit = "event"
		}
	}
	return c.silent
}
