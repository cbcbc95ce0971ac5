package procgroup

import (
	"bytes"
	"time"
)

// stacksTime is how much of the kill grace the programs may take to write their stacks. Tests set more.
var stacksTime = 200 * time.Millisecond

// maxErrorStacks is how many bytes of the stacks are in the Stack of the error.
const maxErrorStacks = 64 << 10

// writeStacks has the programs write their stacks. grace is the time that is left before they are killed.
func (p *Process) writeStacks(grace time.Duration) {
	if grace <= 0 {
		return
	}
	half := time.Now().Add(grace / 2)
	ask := p.tree.StackWriters(time.Now().Add(min(stacksTime, grace/4)), nil)
	if ask == nil {
		return
	}
	// The time of the programs begins only now. Recognising them takes almost none of it, unless the machine is busy,
	// and then they need all of it.
	until := time.Now().Add(stacksTime)
	if until.After(half) {
		until = half
	}
	p.out.BeginStacks()
	ask(until)
	p.out.EndStacks(until)
}

// withStacks adds the stacks of r to a list of processes.
func withStacks(list []byte, r *Result) []byte {
	text := []byte(r.Stacks.Text())
	if len(text) == 0 {
		return list
	}
	if len(text) > maxErrorStacks {
		text = text[:bytes.LastIndexByte(text[:maxErrorStacks], '\n')+1]
		text = append(text, "[more in the Result]\n"...)
	}
	if len(list) == 0 {
		return text
	}
	return bytes.Join([][]byte{list, text}, []byte{'\n'})
}

// describe replaces the stack of the command's execution: the stack of the goroutine that waits for
// the processes would be of no use. If a limit has fired, it keeps the list for the result; it is
// called before the tree is asked to end.
func (p *Process) describe(stopped bool) []byte {
	select {
	case <-p.spawned:
	default:
		return nil
	}
	p.viewing <- struct{}{}
	defer func() { <-p.viewing }()
	if p.tree == nil || p.over.Load() {
		return nil
	}
	view := newProcessList(p.tree.Snapshot(time.Now().Add(viewTime)))
	if pid := p.input.now().Pid; pid != 0 {
		for i := range view.Processes {
			if view.Processes[i].Pid == pid {
				view.Processes[i].Wait = "input"
			}
		}
	}
	if stopped {
		p.view = view
	}
	if text := view.String(); text != "" {
		return []byte(text)
	}
	return nil
}
