package capture

import (
	"bytes"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/stackdump"
)

// BeginStacks begins to separate stack dumps from the output. Call it once, before the programs get the signals that
// make them write their stacks. EndStacks ends the separation.
//
// A dump is recognised by its first line. Whatever precedes that line on the stream is output. Whatever follows it,
// until EndStacks, belongs to the dump: the dumps of Go and Python have no reliable end, and lines of other programs
// may come in between, such as those of go test, which passes on what the test writes. The dump of a JVM, which goes on
// running, has an end, and output may follow it.
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

// EndStacks waits until all streams have ended or failed, but not beyond until, reads the available output, and ends
// the separation of stack dumps. Bytes that are read later are output.
func (c *Capture) EndStacks(until time.Time) {
	patient.Wait(c.done, until)
	c.rest()
	for i := range c.streams {
		s := &c.streams[i]
		s.passing.Lock()
		c.giveBack(s)
		s.divider = nil
		s.passing.Unlock()
	}
}

// Stacks returns the stack dumps of stdout, then those of stderr: the first maxStacks bytes that came on both together.
// The Output is empty if there were none. Call it after Finish.
func (c *Capture) Stacks() kept.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil || c.stacks.total == 0 {
		return kept.Output{}
	}
	return kept.Beginning(c.stacks.total, c.stacks.lines, bytes.Join(c.stacks.kept[:], nil))
}
