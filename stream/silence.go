package stream

import (
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A SilenceError reports that a stream was stopped because it had gone silent. It wraps a [*timeout.Error], which has the
// limit that was exceeded, First or Idle, and the time since the stream or the request began; errors.Is finds
// [timeout.ErrIdle].
type SilenceError struct {
	// Events is the number of events that were signs of life or, if every chunk is one, the number
	// of chunks. If it is 0, the stream was stopped before the first event; otherwise between two
	// events.
	Events int
	// Ignored is the number of chunks that were no signs of life and came after the last sign of
	// life. It is above 0 if keep-alives came, or a part of an event.
	Ignored int

	stop *timeout.Error
	unit string
}

// Error says for how long the stream had stalled, before the first event or between events, and how
// many events had come in which time.
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
	if e.stop == nil { // somebody else has made it, such as a test
		return &timeout.Error{Kind: timeout.ErrIdle}
	}
	return e.stop
}

// Timeout returns true, as for every error of a limit.
func (e *SilenceError) Timeout() bool { return true }

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// A count is what a SilenceError says of a stream.
type count struct {
	signs, ignored int
	events         bool // signs are events, and not chunks
	silent         *SilenceError
}

// add counts a chunk with n signs of life.
func (c *count) add(n int) {
	c.signs += n
	if c.ignored++; n > 0 {
		c.ignored = 0
	}
}

// silence returns err, as a SilenceError if the idle limit has stopped the stream.
func (c *count) silence(err error) error {
	var stop *timeout.Error
	if !errors.As(err, &stop) || stop.Kind != timeout.ErrIdle {
		return err
	}
	if c.silent == nil {
		c.silent = &SilenceError{Events: c.signs, Ignored: c.ignored, stop: stop, unit: "chunk"}
		if c.events {
			c.silent.unit = "event"
		}
	}
	return c.silent
}
