package stream

import (
	"io"
	"iter"
)

// maxEmpty is the number of consecutive reads without bytes and without an error that end the iteration.
const maxEmpty = 100

// maxChunk is the largest number of bytes in one read.
const maxChunk = 64 << 10

// Events returns an iterator over the server-sent events of one connection. It is for clients that parse a stream
// themselves, such as the body of a response, also of one through [Notifications]. Lines may end in \n, \r\n or \r.
// Comments are dropped, and so is an event that was cut off by the end of r.
//
// Events reads from r only while the caller iterates, which waits for it, and does not close r. If a read fails, the
// last element is the zero Event with the error of the read; io.EOF is not an error. If r returns neither bytes nor
// an error 100 times in a row, the error is [io.ErrNoProgress]. If an event, including the names of its fields, has
// more than limit bytes, the error is [ErrEventTooLarge]; a limit of 0 or less means 16 MiB. The caller may keep the
// Data of an event.
func Events(r io.Reader, limit int) iter.Seq2[Event, error] {
	if limit <= 0 {
		limit = maxEvent
	}
	return func(yield func(Event, error) bool) {
		var c collector
		l := lexer{to: &c, most: limit}
		l.connect()
		chunk := make([]byte, 4<<10)
		empty := 0
		for {
			n, err := r.Read(chunk)
			full := n == len(chunk)
			if empty++; n > 0 {
				empty = 0
			} else if err == nil && empty == maxEmpty {
				err = io.ErrNoProgress
			}
			ok := l.feed(chunk[:n])
			for _, e := range c.take() {
				if !yield(e, nil) {
					return
				}
			}
			switch {
			case !ok:
				err = ErrEventTooLarge
			case err == nil:
				if full && len(chunk) < maxChunk { // small reads would make a large event slow
					chunk = make([]byte, 2*len(chunk))
				}
				continue
			case err == io.EOF:
				return
			}
			yield(Event{}, err)
			return
		}
	}
}
