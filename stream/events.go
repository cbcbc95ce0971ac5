package stream

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A splitter separates server-sent events, so that only whole events are passed on. Lines may end
// in \n, \r\n or \r, and are passed on with \n. Comments are dropped, and so is the byte order mark
// of a connection. Fields are handled as in the WHATWG standard, except that an event without data
// is passed on too: it may have an id.
type splitter struct {
	buf     []byte // lines of the current event, and the current line
	line    int    // index in buf at which the current line begins
	comment bool   // the current line is a comment and is dropped
	cr      bool   // the last byte was \r, so a \n that follows belongs to it
	start   bool   // start of a connection: a byte order mark may come

	max    int     // most bytes of an event
	pass   bool    // pass by an event that is larger, instead of stopping
	large  bool    // such an event is passing by: of each line, only whether it is empty is known
	passed int     // number of such events that have begun
	parse  bool    // collect parsed events instead of passing their lines on
	parsed []Event // whole events since the caller last took them
	data   []byte  // data of the current event, if events are parsed

	id, newID string // of the last whole event, and of the current event
	name      string // of the current event
	begun     bool   // the first event has been passed on
	session   bool   // the first event was named "endpoint"
	retry     time.Duration
	asked     bool // retry was received and not yet used
}

// largeEvent is the size from which the space for an event is doubled.
const largeEvent = 64 << 10

const mark = "\xef\xbb\xbf"

// connect prepares for a new connection: the incomplete event is dropped.
func (s *splitter) connect() {
	s.buf, s.line = s.buf[:0], 0
	s.comment, s.cr, s.start = false, false, true
	s.newID, s.name = s.id, ""
}

// feed consumes bytes and appends whole events to out. It reports false if an event is too large.
func (s *splitter) feed(out, p []byte) ([]byte, bool) {
	for len(p) > 0 {
		if s.cr && p[0] == '\n' {
			s.cr, p = false, p[1:]
			continue
		}
		s.cr = false
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end, part = cr, p[:cr]
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

// keep appends to the current line.
func (s *splitter) keep(part []byte) bool {
	if len(part) == 0 || s.comment {
		return true
	}
	if s.large {
		if len(s.buf) == s.line {
			s.buf = append(s.buf, part[0])
		}
		return true
	}
	if size := len(s.buf) + len(part); size > cap(s.buf) && size > largeEvent {
		s.buf = slices.Grow(s.buf, len(s.buf)+len(part)) // doubled, where append would copy a large event many times
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
	if len(s.buf) <= s.max {
		return true
	}
	if s.pass {
		s.large, s.data, s.line = true, nil, 0
		s.passed++
		s.buf = []byte{part[0]}
	}
	return s.pass
}

// unmark removes the byte order mark from the first line of a connection. It reports false while
// more bytes are needed to decide.
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
	case s.large && len(line) > 0:
		s.buf, s.line = s.buf[:1], 1
	case s.large:
		s.large, s.name, s.newID = false, "", s.id
		s.buf, s.line = s.buf[:0], 0
	case len(line) > 0:
		s.field(line)
		s.buf = append(s.buf, '\n')
		s.line = len(s.buf)
	case len(s.buf) > 0:
		if s.parse {
			s.parsed = append(s.parsed, Event{ID: s.newID, Name: s.name, Data: bytes.TrimSuffix(s.data, []byte{'\n'}), Retry: s.retry})
			s.data = nil
		} else {
			out = append(append(out, s.buf...), '\n')
		}
		if !s.begun {
			s.begun, s.session = true, s.name == "endpoint"
		}
		s.id, s.name = s.newID, ""
		s.buf, s.line = emptied(s.buf), 0
	}
	return out
}

func (s *splitter) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if !s.parse {
			return
		}
		s.data = append(append(s.data, value...), '\n')
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
		// A value that does not fit counts as the largest that does.
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			ms = 1<<31 - 1
		}
		s.retry, s.asked = time.Duration(ms)*time.Millisecond, true
	}
}

// emptied returns p for the next event, or nil if p is large, so that one large event does not keep
// its memory.
func emptied(p []byte) []byte {
	if cap(p) > 64<<10 {
		return nil
	}
	return p[:0]
}
