package capture

import (
	"bytes"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/stackdump"
)

// BeginStacks begins to separate from the output the stacks that programs write when they are asked to; see
// EndStacks. Call it once, before the programs are asked.
//
// A stack is recognised by its first line, and not by the time alone: what a program has written before, and what
// others write on the same stream before it begins, is output. From there on all is stacks until EndStacks, because
// neither Go's nor Python's have an end that could be relied on, and other lines may be in between: those of go test,
// for example, which passes on what the test has written. Only a JVM, which goes on, ends its own.
func (c *Capture) BeginStacks() {
	c.mu.Lock()
	c.stacks = new(stacks)
	c.mu.Unlock()
	for i := range c.streams {
		s := &c.streams[i]
		s.passing.Lock()
		s.divider = new(stackdump.Divider)
		s.passing.Unlock()
	}
}

// EndStacks waits until all streams have ended, but not beyond until. What is written later is output.
func (c *Capture) EndStacks(until time.Time) {
	wait(c.done, until)
	c.rest()
	for i := range c.streams {
		s := &c.streams[i]
		s.passing.Lock()
		c.giveBack(s, nil)
		s.divider = nil
		s.passing.Unlock()
	}
}

// Stacks returns the stacks that were kept, those of the first stream first. Call it after Finish.
func (c *Capture) Stacks() kept.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil || c.stacks.total == 0 {
		return kept.Output{}
	}
	return kept.Beginning(c.stacks.total, c.stacks.lines, bytes.Join(c.stacks.kept[:], nil))
}
