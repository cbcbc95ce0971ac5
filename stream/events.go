package stream

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Event is one server-sent event.
type Event struct {
	// ID is the position of the stream after the event, for the Last-Event-ID header of a request
	// that continues there. An event without an id has the ID of the event before it. "" means that
	// the server has named no position.
	ID string
	// Name is the value of the event field. It is "" if the event has no such field, which makes it
	// a "message".
	Name string
	// Data holds the data lines of the event, joined with \n. It is empty if the event has none.
	Data []byte
	// Retry is the delay before a reconnect that the server has last asked for. 0 means that it has
	// not asked.
	Retry time.Duration
}

// maxEvent is the largest event, in bytes.
const maxEvent = 16 << 20

// A lexer finds the fields and the ends of the server-sent events in the bytes of one connection after
// another. Lines may end in \n, \r\n or \r. Comments are dropped, and so is the byte order mark of a
// connection.
type lexer struct {
	to   consumer
	most int  // bytes of an event
	skip bool // pass by an event that is larger, instead of stopping

	buf     []byte // lines of the current event, each with a \n, and the current line
	line    int    // index in buf at which the current line begins
	comment bool   // the current line is a comment and is dropped
	cr      bool   // the last byte was \r, so a \n that follows belongs to it
	start   bool   // start of a connection: a byte order mark may come
	large   bool   // a larger event is passing by: of each line, only whether it is empty is known
	skipped int    // number of such events that have begun
}

// A consumer takes what a lexer finds. It must not keep what it is given.
type consumer interface {
	field(name string, value []byte)
	event(lines []byte) // the current event is complete
	drop()              // the current event will not be
}

// largeEvent is the size from which the space for an event is doubled, and is not kept.
const largeEvent = 64 << 10

const mark = "\xef\xbb\xbf"

// connect prepares for a new connection: the incomplete event is dropped.
func (l *lexer) connect() {
	l.buf, l.line = l.buf[:0], 0
	l.comment, l.cr, l.start = false, false, true
	l.to.drop()
}

// feed consumes bytes. It reports false if an event is too large.
func (l *lexer) feed(p []byte) bool {
	for len(p) > 0 {
		if l.cr && p[0] == '\n' {
			l.cr, p = false, p[1:]
			continue
		}
		l.cr = false
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end, part = cr, p[:cr]
		}
		if !l.keep(part) {
			return false
		}
		if end < 0 {
			return true
		}
		l.cr = p[end] == '\r'
		p = p[end+1:]
		l.endLine()
	}
	return true
}

// keep appends part to the current line. It reports false if the event is too long and must not be skipped.
func (l *lexer) keep(part []byte) bool {
	if len(part) == 0 || l.comment {
		return true
	}
	if l.large {
		if len(l.buf) == l.line {
			l.buf = append(l.buf, part[0])
		}
		return true
	}
	if size := len(l.buf) + len(part); size > cap(l.buf) && size > largeEvent {
		l.buf = slices.Grow(l.buf, len(l.buf)+len(part)) // doubled, where append would copy a large event many times
	}
	l.buf = append(l.buf, part...)
	if l.start && !l.unmark() {
		return true
	}
	if len(l.buf) > l.line && l.buf[l.line] == ':' {
		l.comment = true
		l.buf = l.buf[:l.line]
		return true
	}
	if len(l.buf) <= l.most {
		return true
	}
	if l.skip {
		l.large, l.buf, l.line = true, []byte{part[0]}, 0
		l.skipped++
		l.to.drop()
	}
	return l.skip
}

// unmark removes the byte order mark from the first line of a connection. It reports false while
// more bytes are needed to decide.
func (l *lexer) unmark() bool {
	if len(l.buf) < len(mark) && strings.HasPrefix(mark, string(l.buf)) {
		return false
	}
	l.start = false
	l.buf = bytes.TrimPrefix(l.buf, []byte(mark))
	return true
}

func (l *lexer) endLine() {
	l.start = false
	line := l.buf[l.line:]
	switch {
	case l.comment:
		l.comment = false
	case l.large && len(line) > 0:
		l.buf, l.line = l.buf[:1], 1
	case l.large:
		l.large = false
		l.buf, l.line = l.buf[:0], 0
	case len(line) > 0:
		name, value, _ := bytes.Cut(line, []byte{':'})
		l.to.field(string(name), bytes.TrimPrefix(value, []byte{' '}))
		l.buf = append(l.buf, '\n')
		l.line = len(l.buf)
	case len(l.buf) > 0:
		l.to.event(l.buf)
		l.buf, l.line = reuse(l.buf), 0
	}
}

// reuse returns p for the next event, or nil if p is large, so that one large event does not keep
// its memory.
func reuse(p []byte) []byte {
	if cap(p) > largeEvent {
		return nil
	}
	return p[:0]
}

// The fields of a stream that both consumers need. They are handled as in the WHATWG standard, except
// that an event without data is one, too: it may have an id.
type fields struct {
	id, newID string // of the last whole event, and of the current event
	name      string // of the current event
	retry     time.Duration
	hasRetry  bool // retry was received
}

func (f *fields) field(name string, value []byte) {
	switch name {
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			f.newID = string(value)
		}
	case "event":
		f.name = string(value)
	case "retry":
		if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
			return
		}
		// A value that does not fit counts as the largest that does.
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			ms = 1<<31 - 1
		}
		f.retry, f.hasRetry = time.Duration(ms)*time.Millisecond, true
	}
}

func (f *fields) event() { f.id, f.name = f.newID, "" }

func (f *fields) drop() { f.newID, f.name = f.id, "" }

// A passer passes the lines of whole events on, with \n at their ends.
type passer struct {
	fields
	out     []byte
	begun   bool // the first event has been passed on
	session bool // the first event was named "endpoint"
}

func (p *passer) event(lines []byte) {
	p.out = append(append(p.out, lines...), '\n')
	if !p.begun {
		p.begun, p.session = true, p.name == "endpoint"
	}
	p.fields.event()
}

// A collector collects whole events.
type collector struct {
	fields
	data   []byte // of the current event
	events []Event
}

func (c *collector) field(name string, value []byte) {
	if name == "data" {
		c.data = append(append(c.data, value...), '\n')
		return
	}
	c.fields.field(name, value)
}

func (c *collector) event([]byte) {
	c.events = append(c.events, Event{ID: c.newID, Name: c.name, Data: bytes.TrimSuffix(c.data, []byte{'\n'}), Retry: c.retry})
	c.data = nil // the caller may keep it
	c.fields.event()
}

func (c *collector) drop() {
	c.data = nil
	c.fields.drop()
}

// take returns the events that were collected since the last call, until the next event.
func (c *collector) take() []Event {
	events := c.events
	c.events = c.events[:0]
	return events
}
