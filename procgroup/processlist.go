package procgroup

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// A ProcessList describes the processes of a command at one moment. The verbs of package fmt that print strings print
// it as a table with one line per process, indented below its parent.
//
// The list has at most 64 processes, each with the first 256 bytes of its arguments. On Linux the search ends after 5
// ms, but examines at least 256 processes of the system. If a process is too busy to show its arguments, the search
// waits about a tenth of a second for them.
type ProcessList struct {
	Processes []ProcessInfo // parents before their children
	// Truncated reports whether the list may be incomplete. With [Cgroup], zombies may be missing in any case.
	Truncated bool
}

// A ProcessInfo describes one process of a [ProcessList]. A field that the system does not provide is zero.
type ProcessInfo struct {
	Pid, Parent int // ids of the process and of its parent
	// State is "running" (or ready to run), "sleeping", "uninterruptible", "stopped", "traced", "zombie", "dead",
	// "idle" or "parked". Linux only.
	State string
	// Args contains the arguments, beginning with the name of the program. If they were cut, the last one ends with
	// "…". They may contain secrets. On Windows, Args contains only the name of the program. If a process shows no
	// arguments, as a zombie, a process that has overwritten them or one that is too busy, Args contains only the name
	// in brackets, or "[?]" if the process does not show its name in time either.
	Args []string
	CPU  time.Duration // processor time used
	Age  time.Duration // time since the process started
	// Wait is the kernel function in which the process waits. If only /proc/<pid>/stack shows it, which only root can
	// read, Wait contains the three innermost functions. Wait is "input" if the process waits for the command's input;
	// see [InputWait]. Linux only.
	Wait string

	depth int // number of ancestors in the list
}

// String returns a table with a heading and one line per process, or "" if the list is empty. If Truncated is set,
// another line says that there may be more.
func (l ProcessList) String() string {
	if len(l.Processes) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PID\tSTATE\tCPU\tAGE\tWAITS IN\tCOMMAND")
	for i := range l.Processes {
		p := &l.Processes[i]
		fmt.Fprintf(w, "%d\t%s\t%v\t%v\t%s\t%s%s\n", p.Pid, cmp.Or(p.State, "-"), p.CPU.Round(10*time.Millisecond), p.Age.Round(10*time.Millisecond),
			cmp.Or(p.Wait, "-"), strings.Repeat("  ", p.depth), quoted(p.Args))
	}
	_ = w.Flush()
	if l.Truncated {
		b.WriteString("(there may be more)\n")
	}
	return b.String()
}

// quoted joins args with spaces, on a single line. It quotes each argument that is empty, or that contains a space, a
// quotation mark, a backslash or an unprintable character.
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

// newProcessList returns a list of all with parents before their children, and otherwise sorted by process id. more is
// its Truncated.
func newProcessList(all []proctree.Process, more bool) ProcessList {
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
	l := ProcessList{Truncated: more}
	var add func(p proctree.Process, depth int)
	add = func(p proctree.Process, depth int) {
		l.Processes = append(l.Processes, ProcessInfo{
			Pid: p.Pid, Parent: p.Parent, State: p.State, Args: p.Args, CPU: p.CPU, Age: p.Age, Wait: p.Wait, depth: depth,
		})
		for _, child := range below[p.Pid] {
			add(child, depth+1)
		}
	}
	for _, p := range tops {
		add(p, 0)
	}
	return l
}

// viewTime bounds the search for the processes of a list; see ProcessList. Tests set a longer time.
var viewTime = 5 * time.Millisecond

// maxNamed is the number of processes that a line of Leftovers names at most.
const maxNamed = 8

// names returns the names and ids of the first maxNamed processes, and says how many others there are or may be. It
// returns "" for an empty list.
func (l ProcessList) names() string {
	var words []string
	for _, p := range l.Processes[:min(maxNamed, len(l.Processes))] {
		word := "process " + strconv.Itoa(p.Pid)
		if len(p.Args) > 0 {
			word = strings.Trim(quoted([]string{filepath.Base(p.Args[0])}), "[]") + " (" + word + ")"
		}
		words = append(words, word)
	}
	switch more := len(l.Processes) - len(words); {
	case more > 0 && l.Truncated:
		words = append(words, fmt.Sprintf("and at least %d more", more))
	case more > 0:
		words = append(words, fmt.Sprintf("and %d more", more))
	case len(words) > 0 && l.Truncated:
		words = append(words, "and perhaps others")
	}
	return strings.Join(words, ", ")
}

// without returns a copy of the list that lacks the processes with the ids pids.
func (l ProcessList) without(pids []int) ProcessList {
	l.Processes = slices.DeleteFunc(slices.Clone(l.Processes), func(p ProcessInfo) bool { return slices.Contains(pids, p.Pid) })
	return l
}
