package transcript

import (
	"bytes"
	"io"
	"regexp"
)

// A matcher looks for a pattern in lines. The time that a match takes grows with the line times the pattern and may
// be minutes, so a matcher gives up at the next character once done has come.
type matcher struct {
	pattern *regexp.Regexp
	done    <-chan struct{}

	prefix  []byte // begins every match
	literal bool   // the prefix is the whole expression
	line    bytes.Reader
	cut     bool // done came within the line
}

func newMatcher(pattern *regexp.Regexp, done <-chan struct{}) matcher {
	prefix, whole := pattern.LiteralPrefix()
	// A pattern with anchors is "whole" for the regexp package, too.
	return matcher{pattern: pattern, done: done, prefix: []byte(prefix), literal: whole && prefix == pattern.String()}
}

// match reports whether the pattern matches a line. It returns false if done comes first.
func (m *matcher) match(line []byte) bool {
	switch {
	case m.cut || !bytes.Contains(line, m.prefix):
		return false
	case m.literal:
		return true
	}
	m.line.Reset(line)
	// The match of a line that was cut short may be one of its end, where it has none.
	return m.pattern.MatchReader(m) && !m.cut
}

// over reports whether done has come.
func (m *matcher) over() bool {
	select {
	case <-m.done:
		m.cut = true
	default:
	}
	return m.cut
}

// ReadRune implements [io.RuneReader]. The regexp package calls it for each step of a match, so that an error ends
// the match.
func (m *matcher) ReadRune() (r rune, size int, err error) {
	if m.over() {
		return 0, 0, io.EOF
	}
	return m.line.ReadRune()
}
