package sdnotify

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxSize is how many bytes a message may have.
const MaxSize = 4096

// A Message is the content of one datagram. The zero Message is an empty one.
type Message struct {
	Beat     bool // WATCHDOG=1
	Ready    bool // READY=1
	Stopping bool // STOPPING=1

	Status string // of STATUS=, as a line of valid text
	Said   bool   // Status was given: it may be empty

	Extend   time.Duration // of EXTEND_TIMEOUT_USEC=
	Extended bool          // Extend was given: it may be 0
}

// Parse reads a datagram. What is unknown or cannot be read is left out, and of a key that comes twice the last value
// counts, as in systemd.
func Parse(b []byte) (m Message) {
	for line := range strings.SplitSeq(string(b), "\n") {
		key, value, assigned := strings.Cut(line, "=")
		if !assigned {
			continue // to systemd, too, a line without = says nothing
		}
		switch key {
		case "WATCHDOG":
			m.Beat = m.Beat || value == "1"
		case "READY":
			m.Ready = m.Ready || value == "1"
		case "STOPPING":
			m.Stopping = m.Stopping || value == "1"
		case "STATUS":
			m.Status, m.Said = clean(value), true
		case "EXTEND_TIMEOUT_USEC":
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				m.Extend, m.Extended = time.Duration(min(n, math.MaxInt64/1000))*time.Microsecond, true
			}
		}
	}
	return m
}

// keys are how the lines begin that Parse reads. After an = with a value comes the end of the line.
var keys = [Keys][]byte{[]byte("WATCHDOG=1"), []byte("READY=1"), []byte("STOPPING=1"), []byte("STATUS="), []byte("EXTEND_TIMEOUT_USEC=")}

// Keys is how many keys Says tells apart.
const Keys = 5

// Says reports which of the keys a datagram has, at a fraction of the cost of Parse.
func Says(b []byte) (says [Keys]bool) {
	for i, key := range keys {
		for from := 0; !says[i]; {
			at := bytes.Index(b[from:], key)
			if at < 0 {
				break
			}
			at += from
			from = at + len(key)
			says[i] = (at == 0 || b[at-1] == '\n') && (key[len(key)-1] == '=' || from == len(b) || b[from] == '\n')
		}
	}
	return says
}

// maxStatus is how many bytes of a status are kept, so that a message with one can be sent.
const maxStatus = 2048

// clean returns text that does nothing to a terminal or a log that shows it.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxStatus {
		return s
	}
	return strings.ToValidUTF8(s[:maxStatus], "")
}

// String returns the message as it is sent. Line ends in the status become blanks.
func (m Message) String() string {
	var lines []string
	add := func(say bool, line string) {
		if say {
			lines = append(lines, line)
		}
	}
	add(m.Ready, "READY=1")
	add(m.Stopping, "STOPPING=1")
	add(m.Said, "STATUS="+clean(m.Status))
	add(m.Extended, "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(max(m.Extend, 0).Microseconds(), 10))
	add(m.Beat, "WATCHDOG=1")
	return strings.Join(lines, "\n")
}
