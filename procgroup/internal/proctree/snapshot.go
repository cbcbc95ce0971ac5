package proctree

import (
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Process is one of a tree at an instant. What the system does not tell is zero.
type Process struct {
	Pid, Parent int
	State       string
	Args        []string
	CPU, Age    time.Duration
	Wait        string
}

// What bounds a snapshot: how many processes are in it, how many bytes of the arguments of
// each, and how many are looked at for members whatever the time. So many take a few
// milliseconds, and on a busy machine, where the time would be up at once, there still is
// something to see.
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

// next reports whether one more may be looked at. It is safe for concurrent use.
func (b *budget) next() bool {
	return b.spent.Add(1) <= maxFree || time.Now().Before(b.until)
}

// splitArgs returns the arguments as far as they are kept.
func splitArgs(text []byte) (args []string) {
	cut := len(text) > maxArgs
	if cut {
		text = text[:maxArgs]
		for i := 0; i < utf8.UTFMax-1 && !utf8.Valid(text) && len(text) > 0; i++ { // a character cut in half
			text = text[:len(text)-1]
		}
	}
	if len(text) == 0 {
		return nil
	}
	args = strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	if cut {
		args[len(args)-1] += "…"
	}
	return args
}
