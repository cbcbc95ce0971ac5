package transcript

import (
	"bytes"
	"io"
	"regexp"
)

// A matcher searches lines for a pattern. The time of a match grows with the size of the line times the size of the
// pattern and may be minutes, so a match ends at the next character after done is closed.
type matcher struct {
	pattern *regexp.Regexp
	done    <-chan struct{}

	prefix  []byte       // begins every match
	literal bool         // the pattern is the string prefix
	line    bytes.Reader // the rest of the line during a match
	cut     bool         // done was found closed
}

func newMatcher(pattern *regexp.Regexp, done <-chan struct{}) matcher {
	prefix, whole := pattern.LiteralPrefix()
	// The comparison is needed because whole is also true for a pattern with anchors.
	return matcher{pattern: pattern, done: done, prefix: []byte(prefix), literal: whole && prefix == pattern.String()}
}

// match reports whether the pattern matches a line. It returns false if done is closed before the match is complete.
func (m *matcher) match(line []byte) bool {
	switch {
	case m.cut || !bytes.Contains(line, m.prefix):
		return false
	case m.literal:
		return true
	}
	m.line.Reset(line)
	// A match that done has ended may be false: the pattern may have matched the end of a line too early.
	return m.pattern.MatchReader(m) && !m.cut
}

// over reports whether done is closed, and then sets m.cut.
func (m *matcher) over() bool {
	select {
	case <-m.done:
		m.cut = true
	default:
	}
	return m.cut
}

// ReadRune implements [io.RuneReader] for the regexp package, which calls it for each character of the line that it
// examines. It returns io.EOF at the end of the line and, to end the search early, once done is closed.
func (m *matcher) ReadRune() (r rune, size int, err error) {
	if m.over() {
		return 0, 0, io.EOF
	}
	return m.line.ReadRune()
}
