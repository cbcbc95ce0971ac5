package procgroup

import (
	"bytes"
	"time"
)

// stacksTime is the part of the kill grace in which the programs write their stacks. Tests set a longer time.
var stacksTime = 200 * time.Millisecond

// maxErrorStacks is the maximum number of bytes of stacks in the Stack of the error.
const maxErrorStacks = 64 << 10

// writeStacks makes the programs of the tree write their stacks, for at most stacksTime and half of grace. grace is the
// time until the programs are killed.
func (p *Process) writeStacks(grace time.Duration) {
	if grace <= 0 {
		return
	}
	half := time.Now().Add(grace / 2)
	ask := p.tree.StackWriters(time.Now().Add(min(stacksTime, grace/4)), nil)
	if ask == nil {
		return
	}
	// stacksTime begins only now. On a busy machine, recognising the programs above took long, and the programs then
	// need all of stacksTime.
	until := time.Now().Add(stacksTime)
	if until.After(half) {
		until = half
	}
	p.out.BeginStacks()
	ask(until)
	p.out.EndStacks(until)
}

// withStacks returns list, the text of a ProcessList, followed by the stacks of r.
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

// describe returns a table of the command's processes, or nil before the start and after the end. The execution uses it
// in place of the stack of the goroutine that waits for the command. If stopped is true, describe keeps the list for
// the result, and is called before the tree is asked to end.
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
