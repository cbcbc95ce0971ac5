package capture

import (
	"sync"
	"time"
)

// A child that this process forks has copies of all descriptors of the process until it executes its
// command. Until then it holds the streams of every other command that was being started when it
// was forked. On a machine that starts hundreds of commands this may last longer than such a
// command runs. (syscall.ForkLock does not help: it is released shortly before the child closes
// the descriptors.)

// starts has the captures whose commands are being started.
var starts struct {
	sync.Mutex
	count   uint64 // number of captures that have begun to start
	pending map[*Capture]struct{}
}

// A start is the state of a Capture during the start of its command.
type start struct {
	number uint64
	over   chan struct{}
	others uint64 // captures with a higher number began after this one had closed the writing ends
}

// beginStart is called before the pipes are made.
func (c *Capture) beginStart() {
	if c.config.Pipe != nil {
		return // no child of this process has copies of the pipes of a simulation
	}
	starts.Lock()
	defer starts.Unlock()
	starts.count++
	c.start = start{number: starts.count, over: make(chan struct{})}
	if starts.pending == nil {
		starts.pending = make(map[*Capture]struct{})
	}
	starts.pending[c] = struct{}{}
}

// endStart is called when the start has succeeded or failed, and this process has closed the writing
// ends of the pipes.
func (c *Capture) endStart() {
	if c.config.Pipe != nil {
		return
	}
	starts.Lock()
	defer starts.Unlock()
	c.start.others = starts.count
	delete(starts.pending, c)
	close(c.start.over)
}

// beganStarts is called when this process closes the command's side of a terminal, after the start.
func (c *Capture) beganStarts() {
	starts.Lock()
	defer starts.Unlock()
	c.start.others = starts.count
}

// awaitStarts waits for the starts during which a child may hold the streams of c, but not beyond until.
func (c *Capture) awaitStarts(until time.Time) {
	if c.config.Pipe != nil {
		return
	}
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
