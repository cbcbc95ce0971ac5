package proctree

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Process is one process of a tree at an instant. Fields that the system does not show are zero.
type Process struct {
	Pid, Parent int
	State       string
	Args        []string
	CPU, Age    time.Duration
	Wait        string
}

// The bounds of a snapshot: how many processes are in it, how many bytes of the arguments of each, and how many
// processes are looked at whatever the time. The last take a few milliseconds, so that a snapshot is not empty
// on a busy machine, where the time would be up at once.
const (
	maxListed = 64
	maxArgs   = 256
	maxFree   = 256
)

// A budget bounds a look at processes.
type budget struct {
	until time.Time
	spent atomic.Int64
}

// next reports whether one more process may be looked at. It is safe for concurrent use.
func (b *budget) next() bool {
	return b.spent.Add(1) <= maxFree || time.Now().Before(b.until)
}

// splitArgs splits arguments, and cuts them after maxArgs bytes. It returns nil if there are none.
func splitArgs(text []byte) (args []string) {
	cut := len(text) > maxArgs
	if cut {
		text = text[:maxArgs]
		for i := 0; i < utf8.UTFMax-1 && !utf8.Valid(text) && len(text) > 0; i++ { // a character cut in half
			text = text[:len(text)-1]
		}
	}
	joined := strings.TrimRight(string(text), "\x00")
	if joined == "" { // a process that has overwritten them, or that is ending, may show nothing but zero bytes
		return nil
	}
	args = strings.Split(joined, "\x00")
	if cut {
		args[len(args)-1] += "…"
	}
	return args
}
