package sdnotify

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// MaxSize is the largest size of a message in bytes.
const MaxSize = 4096

// A Message is the content of one datagram. The zero Message is an empty one.
type Message struct {
	Beat     bool // WATCHDOG=1
	Ready    bool // READY=1
	Stopping bool // STOPPING=1

	Status string // the value of STATUS=, as a line of valid UTF-8
	Said   bool   // the message has a status, which may be empty

	Extend   time.Duration // the value of EXTEND_TIMEOUT_USEC=
	Extended bool          // the message has that key; its value may be 0
}

// Parse reads a datagram. It ignores unknown keys and invalid values. If STATUS or EXTEND_TIMEOUT_USEC occurs twice,
// the last value counts, as in systemd.
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

// keys lists the beginnings of the lines that Parse reads. One that does not end with = is a whole line.
var keys = [Keys][]byte{[]byte("WATCHDOG=1"), []byte("READY=1"), []byte("STOPPING=1"), []byte("STATUS="), []byte("EXTEND_TIMEOUT_USEC=")}

// Keys is the number of keys that Says looks for.
const Keys = 5

// Says reports which of WATCHDOG=1, READY=1, STOPPING=1, STATUS= and EXTEND_TIMEOUT_USEC= a datagram has, in this
// order. It takes a fraction of the time of Parse, and does not check the values.
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

// maxStatus is the number of bytes to which clean cuts a status, so that the message does not exceed MaxSize.
const maxStatus = 2048

// clean returns s as at most maxStatus bytes of valid UTF-8, in one line.
func clean(s string) string {
	s = texts.Line(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.ToValidUTF8(s[:min(len(s), maxStatus)], "")
}

// String returns the datagram for m, with the status cleaned as by Parse.
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
