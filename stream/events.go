package stream

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// A splitter cuts server-sent events apart, so that only whole ones are passed on. Lines
// may end in \n, \r\n or \r and leave with \n. Comments are left out, and so is the byte
// order mark of a connection. What it does with fields is what the WHATWG's standard
// says of them, but that an event without data is passed on too: it may have an id.
type splitter struct {
	buf     []byte // the lines of the event so far, and the line so far
	line    int    // where in buf the line begins
	comment bool   // the line is a comment, and not kept
	cr      bool   // the last byte was \r, so a \n that follows belongs to it
	start   bool   // of a connection: a byte order mark may come

	id, newID string // of the last whole event, and of the event so far
	name      string // of the event so far, as long as it is the first
	begun     bool   // the first has been passed on
	session   bool   // and was named "endpoint"
	retry     time.Duration
	asked     bool // retry was given and not yet taken
}

const mark = "\xef\xbb\xbf"

// connect makes ready for a new connection: what was half an event is gone.
func (s *splitter) connect() {
	s.buf, s.line = s.buf[:0], 0
	s.comment, s.cr, s.start = false, false, true
	s.newID, s.name = s.id, ""
}

// feed takes bytes as they come and appends to out what is whole. It reports false if an
// event is too large.
func (s *splitter) feed(out, p []byte) ([]byte, bool) {
	for len(p) > 0 {
		if s.cr && p[0] == '\n' {
			s.cr, p = false, p[1:]
			continue
		}
		s.cr = false
		end := bytes.IndexAny(p, "\r\n")
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if !s.keep(part) {
			return out, false
		}
		if end < 0 {
			return out, true
		}
		s.cr = p[end] == '\r'
		p = p[end+1:]
		out = s.endLine(out)
	}
	return out, true
}

// keep appends to the line.
func (s *splitter) keep(part []byte) bool {
	if len(part) == 0 || s.comment {
		return true
	}
	s.buf = append(s.buf, part...)
	if s.start && !s.unmark() {
		return true
	}
	if len(s.buf) > s.line && s.buf[s.line] == ':' {
		s.comment = true
		s.buf = s.buf[:s.line]
		return true
	}
	return len(s.buf) <= MaxEvent
}

// unmark takes the byte order mark from the first line of a connection. It reports
// false as long as it cannot be decided.
func (s *splitter) unmark() bool {
	if len(s.buf) < len(mark) && strings.HasPrefix(mark, string(s.buf)) {
		return false
	}
	s.start = false
	s.buf = bytes.TrimPrefix(s.buf, []byte(mark))
	return true
}

func (s *splitter) endLine(out []byte) []byte {
	s.start = false
	line := s.buf[s.line:]
	switch {
	case s.comment:
		s.comment = false
	case len(line) > 0:
		s.field(line)
		s.buf = append(s.buf, '\n')
		s.line = len(s.buf)
	case len(s.buf) > 0:
		out = append(append(out, s.buf...), '\n')
		if !s.begun {
			s.begun, s.session = true, s.name == "endpoint"
		}
		s.id = s.newID
		s.buf, s.line = emptied(s.buf), 0
	}
	return out
}

func (s *splitter) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			s.newID = string(value)
		}
	case "event":
		s.name = string(value)
	case "retry":
		if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
			return
		}
		// More than fits is as good as what is the most.
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			ms = 1<<31 - 1
		}
		s.retry, s.asked = time.Duration(ms)*time.Millisecond, true
	}
}

// emptied returns p for the next event, or nothing if p is large: one large event is no
// reason to keep its memory.
func emptied(p []byte) []byte {
	if cap(p) > 64<<10 {
		return nil
	}
	return p[:0]
}
