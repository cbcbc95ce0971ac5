package procgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// A Tree is what the processes of a command were doing at an instant. It prints, with
// every verb that prints a string, as a table with a line for each process, indented
// below its parent.
//
// It has 64 processes at the most, with the first 256 bytes of the arguments of each. They
// are looked for, before the tree is asked to end, for 5 ms, or among 256 processes of the
// system where that takes longer. One that is too busy to show its arguments is waited for,
// for a tenth of a second or so, and then shown by its name in brackets.
type Tree struct {
	Processes []ProcessInfo // parents before their children
	// Truncated says that there may be more.
	Truncated bool
}

// A ProcessInfo is one process of a [Tree]. What the system does not tell is zero.
type ProcessInfo struct {
	Pid, Parent int
	// State is "running" (or ready to), "sleeping", "uninterruptible", "stopped", "traced",
	// "zombie", "dead", "idle" or "parked". Linux only.
	State string
	// Args are the arguments, the program's name first; the last one ends with "…" if there
	// is more. They may be secret. On Windows they are the name of the program alone; so they
	// are, in brackets, for a zombie, and for a process too busy to show more.
	Args []string
	CPU  time.Duration // processor time
	Age  time.Duration
	// Wait is the function of the kernel in which it waits, or, where only /proc/<pid>/stack
	// tells, and to root, the three innermost ones. Linux only.
	Wait string

	depth int // below the topmost process that is listed
}

// String is the table; "" if there are no processes.
func (t Tree) String() string {
	if len(t.Processes) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PID\tSTATE\tCPU\tAGE\tWAITS IN\tCOMMAND")
	for i := range t.Processes {
		p := &t.Processes[i]
		fmt.Fprintf(w, "%d\t%s\t%v\t%v\t%s\t%s%s\n", p.Pid, orDash(p.State), p.CPU.Round(10*time.Millisecond), p.Age.Round(10*time.Millisecond),
			orDash(p.Wait), strings.Repeat("  ", p.depth), quoted(p.Args))
	}
	_ = w.Flush()
	if t.Truncated {
		b.WriteString("and perhaps more\n")
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// quoted is a command line on one line: an argument that is empty, or has anything in it
// but what is printed and no space, is in quotation marks.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if q := strconv.Quote(arg); arg == "" || strings.Contains(arg, " ") || q != `"`+arg+`"` {
			words[i] = q
		}
	}
	return strings.Join(words, " ")
}

// newTree puts processes into order.
func newTree(all []proctree.Process, more bool) Tree {
	slices.SortStableFunc(all, func(a, b proctree.Process) int { return a.Pid - b.Pid })
	known := make(map[int]bool)
	below := make(map[int][]proctree.Process)
	for _, p := range all {
		known[p.Pid] = true
	}
	var tops []proctree.Process
	for _, p := range all {
		if known[p.Parent] && p.Parent != p.Pid {
			below[p.Parent] = append(below[p.Parent], p)
		} else {
			tops = append(tops, p)
		}
	}
	t := Tree{Truncated: more}
	var add func(p proctree.Process, depth int)
	add = func(p proctree.Process, depth int) {
		t.Processes = append(t.Processes, ProcessInfo{
			Pid: p.Pid, Parent: p.Parent, State: p.State, Args: p.Args, CPU: p.CPU, Age: p.Age, Wait: p.Wait, depth: depth,
		})
		for _, child := range below[p.Pid] {
			add(child, depth+1)
		}
	}
	for _, p := range tops {
		add(p, 0)
	}
	return t
}

// viewTime is for how long a view of the tree begins to look at more processes, once a limit has fired.
const viewTime = 5 * time.Millisecond

// describe is what stands in place of the stack of the command's execution: where the
// goroutine here waits for the processes is not worth showing. Where a limit has fired, which
// is before the tree is asked to end, it keeps the view for the result.
func (p *Process) describe(stopped bool) []byte {
	select {
	case <-p.spawned:
	default:
		return nil
	}
	p.viewing.Lock()
	defer p.viewing.Unlock()
	if p.tree == nil || p.over.Load() {
		return nil
	}
	view := newTree(p.tree.Snapshot(time.Now().Add(viewTime)))
	if stopped {
		p.view = view
	}
	if text := view.String(); text != "" {
		return []byte(text)
	}
	return nil
}
