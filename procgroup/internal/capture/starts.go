package capture

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// A child that this process forks has copies of all descriptors of the process until it executes its command. Until
// then it holds the streams of every other command that was being started when it was forked. On a machine that starts
// hundreds of commands this may last longer than such a command runs. (syscall.ForkLock does not help: it is released
// shortly before the child closes the descriptors.)

// starts records the starts of commands that are in progress.
var starts struct {
	sync.Mutex
	count   uint64 // number of starts that have begun
	pending map[*start]struct{}
}

// A start is the start of one command, from before its pipes are made until this process has closed their writing ends.
// It is nil in a simulation, because no child of this process has copies of simulated pipes.
type start struct {
	number uint64        // starts are numbered from 1
	over   chan struct{} // closed by end
	others uint64        // children of starts up to this number may have copies of this start's files
}

// beginStart records that a command is being started. Call it before the pipes are made.
func beginStart() *start {
	starts.Lock()
	defer starts.Unlock()
	starts.count++
	s := &start{number: starts.count, over: make(chan struct{})}
	if starts.pending == nil {
		starts.pending = make(map[*start]struct{})
	}
	starts.pending[s] = struct{}{}
	return s
}

// end records that the start has succeeded or failed. Call it after this process has closed the writing ends of the
// pipes.
func (s *start) end() {
	if s == nil {
		return
	}
	s.closed()
	starts.Lock()
	defer starts.Unlock()
	delete(starts.pending, s)
	close(s.over)
}

// closed records that this process has closed the writing ends of the pipes or, later, the command's side of the
// terminal: a child of a start that begins after that has no copy of them.
func (s *start) closed() {
	if s == nil {
		return
	}
	starts.Lock()
	defer starts.Unlock()
	s.others = starts.count
}

// await waits for the end of the other starts whose children may have copies of the files of s, but not beyond until.
// Call it after end: until then s does not know these starts.
func (s *start) await(until time.Time) {
	if s == nil {
		return
	}
	var pending []chan struct{}
	starts.Lock()
	for other := range starts.pending {
		if other.number <= s.others {
			pending = append(pending, other.over)
		}
	}
	starts.Unlock()
	for _, over := range pending {
		patient.Wait(over, until)
	}
}
