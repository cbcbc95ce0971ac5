package capture

import (
	"sync"
	"time"
)

// A child that this process forks has a copy of all its descriptors until it has executed
// its command, and so holds the streams of every other command that was being started at
// that moment. On a machine that is busy with hundreds of starts this may take longer than
// such a command takes to end. (syscall.ForkLock tells less: the parent goes on a little
// before the child closes them.)

// starts are the captures whose commands are being started.
var starts struct {
	sync.Mutex
	count   uint64 // captures that have begun to start
	pending map[*Capture]struct{}
}

// A start is the part of a Capture in that.
type start struct {
	number uint64
	over   chan struct{}
	others uint64 // those with a higher number have begun when our ends were closed already
}

// beginStart is called before the pipes are made.
func (c *Capture) beginStart() {
	starts.Lock()
	defer starts.Unlock()
	starts.count++
	c.start = start{number: starts.count, over: make(chan struct{})}
	if starts.pending == nil {
		starts.pending = make(map[*Capture]struct{})
	}
	starts.pending[c] = struct{}{}
}

// endStart is called when the command has been started, or not, and this process has closed
// the command's ends of the pipes.
func (c *Capture) endStart() {
	starts.Lock()
	defer starts.Unlock()
	c.start.others = starts.count
	delete(starts.pending, c)
	close(c.start.over)
}

// awaitStarts waits for those that may hold what is not theirs, until the time has come.
func (c *Capture) awaitStarts(until time.Time) {
	var pending []chan struct{}
	starts.Lock()
	for other := range starts.pending {
		if other.start.number <= c.start.others {
			pending = append(pending, other.start.over)
		}
	}
	starts.Unlock()
	for _, over := range pending {
		wait(over, until)
	}
}
