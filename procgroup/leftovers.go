package procgroup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxNamed is how many processes a line of Leftovers names.
const maxNamed = 8

// Leftovers says which processes of the command were killed after it had ended, which are still
// running, and which of its output is missing, in one line each. It is "" if there is nothing of that
// kind. The exit code does not show it: a shell that has left processes in the background ends with 0.
// A line names at most eight processes, and ends with "and perhaps others" or "and at least 3 more" if
// the list may be incomplete; see [ProcessList].
//
// Leftovers has no line for a process that others have killed while the command ran: only the command
// knows of that, unless memory ran out; see [ErrMemory]. [Result.Text] includes Leftovers.
func (r *Result) Leftovers() string {
	var b strings.Builder
	line := func(what, names string) {
		if names != "" {
			fmt.Fprintf(&b, "%s: %s.\n", what, names)
		}
	}
	line("Killed because the command had ended", r.Killed.names())
	line("Running on after the command", r.Kept.names())
	line("Running on because the system did not kill them", r.named(r.Survivors))
	line("Running on, and perhaps part of the command", r.named(r.Unidentified))
	if r.PipeHeld {
		b.WriteString("Another process still held the output; what it wrote later may be missing.\n")
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(&b, "The system has not answered %d questions about its processes; a file system may hang.\n", r.Unanswered)
	}
	if r.Unwritten > 0 {
		fmt.Fprintf(&b, "%d bytes of the output were not passed on.\n", r.Unwritten)
	}
	return b.String()
}

// named returns the names of processes, as far as they are known, and their ids.
func (r *Result) named(pids []int) string {
	var l ProcessList
	for _, pid := range pids {
		p := ProcessInfo{Pid: pid}
		for _, known := range slices.Concat(r.Tree.Processes, r.left) {
			if known.Pid == pid {
				p = known
			}
		}
		l.Processes = append(l.Processes, p)
	}
	return l.names()
}

// names returns the names and the ids of the first processes, and how many more there are or may be.
func (l ProcessList) names() string {
	var words []string
	for i, p := range l.Processes {
		if i == maxNamed {
			break
		}
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

// without returns the list without some processes.
func (l ProcessList) without(pids []int) ProcessList {
	l.Processes = slices.DeleteFunc(slices.Clone(l.Processes), func(p ProcessInfo) bool { return slices.Contains(pids, p.Pid) })
	return l
}
