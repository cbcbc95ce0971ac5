package proctree

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Process describes one process of a tree at a moment. Fields that the system does not show are zero. State is a word
// such as "sleeping", and Wait the kernel function in which the process waits.
type Process struct {
	Pid, Parent int
	State       string
	Args        []string
	CPU, Age    time.Duration
	Wait        string
}

// maxListed bounds the processes of a snapshot, and maxArgs the bytes of the arguments of each. A look reads maxFree
// processes even after its time is over, which takes a few milliseconds: on a busy machine the time may be over at
// once, and the snapshot should not be empty.
const (
	maxListed = 64
	maxArgs   = 256
	maxFree   = 256
)

// A budget bounds the number of processes that one look reads: any number before until, and maxFree in any case.
type budget struct {
	until time.Time
	spent atomic.Int64 // number of calls of next
}

// next reports whether one more process may be read: the time until has not come, or next was called at most maxFree
// times. It is safe for concurrent use.
func (b *budget) next() bool {
	return b.spent.Add(1) <= maxFree || time.Now().Before(b.until)
}

// splitArgs returns the arguments in text, each of which ends with a zero byte. It shortens a longer text to maxArgs
// bytes, and then appends "…" to the last argument. It returns nil if there are no arguments.
func splitArgs(text []byte) (args []string) {
	cut := len(text) > maxArgs
	if cut {
		text = text[:maxArgs]
		for i := 0; i < utf8.UTFMax-1 && !utf8.Valid(text) && len(text) > 0; i++ { // remove a character that was cut in half
			text = text[:len(text)-1]
		}
	}
	joined := strings.TrimRight(string(text), "\x00")
	if joined == "" { // a process that has overwritten its arguments, or is exiting, may show only zero bytes
		return nil
	}
	args = strings.Split(joined, "\x00")
	if cut {
		args[len(args)-1] += "…"
	}
	return args
}
