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
	// ID is the position of the stream after the event, for the Last-Event-ID header of a request that continues
	// there. An event without an id field has the ID of the event before it. "" means that the server has sent no ID.
	ID string
	// Name is the value of the event field. It is "" if the event has no such field; the standard then calls it a
	// "message".
	Name string
	// Data holds the data lines of the event, joined with \n. It is empty if the event has no data lines.
	Data []byte
	// Retry is the delay before a reconnect that the server has last requested. 0 means that it has requested none, or
	// no delay.
	Retry time.Duration
}

// maxEvent is the size of the largest event, in bytes.
const maxEvent = 16 << 20

// A lexer finds the fields and the ends of the server-sent events in the bytes of successive connections. Lines may
// end in \n, \r\n or \r. Comments are dropped, and so is the byte order mark of a connection.
type lexer struct {
	to   consumer
	most int  // size of the largest event, in bytes
	skip bool // whether feed skips a larger event instead of stopping

	buf     []byte // the lines of the current event, each with a \n, and the current line
	line    int    // index in buf at which the current line begins
	comment bool   // whether the current line is a comment
	cr      bool   // whether the last byte was \r, so that a \n that follows belongs to it
	start   bool   // whether a byte order mark may come, at the start of a connection
	large   bool   // whether a larger event is being skipped; buf then only shows whether the current line is empty
	skipped int    // number of skipped events since the last call of judge.signs
}

// A consumer receives the fields and events that a lexer finds. It must not keep the slices that it gets.
type consumer interface {
	field(name string, value []byte)
	event(lines []byte) // the current event is complete
	drop()              // the current event will not be completed
}

// largeEvent is the size in bytes above which a buffer grows by doubling, and is not reused.
const largeEvent = 64 << 10

const mark = "\xef\xbb\xbf"

// connect prepares for a new connection, and drops an incomplete event.
func (l *lexer) connect() {
	l.buf, l.line = l.buf[:0], 0
	l.comment, l.cr, l.start = false, false, true
	l.to.drop()
}

// feed consumes p. It returns false if an event is too large and skip is not set.
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

// keep appends part to the current line. It returns false if the event is too large and skip is not set.
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
		l.buf = slices.Grow(l.buf, len(l.buf)+len(part)) // doubled, because append would copy a large event many times
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

// unmark removes the byte order mark from the first line of a connection. It returns false while more bytes are
// needed to decide.
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

// reuse returns p, emptied, for the next event, or nil if p is large, so that one large event does not stay in memory.
func reuse(p []byte) []byte {
	if cap(p) > largeEvent {
		return nil
	}
	return p[:0]
}

// A fields holds the state of a stream that both consumers need. It handles fields as the WHATWG standard says,
// except that an event without data counts, because it may have an ID.
type fields struct {
	id, newID string // the ID of the last whole event, and of the current event
	name      string // the name of the current event
	retry     time.Duration
	hasRetry  bool // whether a valid retry field was received
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
		// A value that does not fit counts as the largest one that does.
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			ms = 1<<31 - 1
		}
		f.retry, f.hasRetry = time.Duration(ms)*time.Millisecond, true
	}
}

func (f *fields) event() { f.id, f.name = f.newID, "" }

func (f *fields) drop() { f.newID, f.name = f.id, "" }

// A passer appends the lines of whole events to out, with \n at their ends.
type passer struct {
	fields
	out     []byte
	begun   bool // whether the first event is complete
	session bool // whether the first event was named "endpoint"
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
	data   []byte // the data lines of the current event, each with a \n
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
	c.data = nil // the caller may keep the Data
	c.fields.event()
}

func (c *collector) drop() {
	c.data = nil
	c.fields.drop()
}

// take returns the events that were collected since the last call. The slice is valid until the next event.
func (c *collector) take() []Event {
	events := c.events
	c.events = c.events[:0]
	return events
}
