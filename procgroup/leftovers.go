package procgroup

import (
	"fmt"
	"slices"
	"strings"
)

// Leftovers returns a text that lists the processes that were killed after the command had ended, the processes that
// are still running, the output that is missing, and the number of questions that the system did not answer, in a line
// each. Without any of these it returns "". The exit code does not show them: a shell that has left processes in the
// background ends with 0. A line names at most eight processes, and counts the others, as in "and 3 more", or in "and
// perhaps others" and "and at least 3 more" if the list may be incomplete; see [ProcessList].
//
// Leftovers does not report a process that another program killed while the command ran, or that the system killed
// because memory ran out; see [OutOfMemory] for the latter. [Result.Text] includes Leftovers.
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

// named returns the ids of processes, with their names if r.Tree or r.left has them.
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

// Text returns the result as text for a reader that sees only this text, such as the model that called a tool: a line
// with the Message, unless it is empty, a line with the exit code, [Result.Leftovers], and Combined as [Output.Text]
// returns it. If bytes of Combined were dropped and the output is in a file (see [Capture]), a line before the output
// names the file.
func (r *Result) Text() string {
	var b strings.Builder
	if r.Message != "" {
		b.WriteString(r.Message + "\n")
	}
	fmt.Fprintf(&b, "Exit code %d.\n", r.ExitCode)
	b.WriteString(r.Leftovers())
	if r.Combined.Dropped > 0 && r.Spill.Path != "" {
		which := "All"
		if r.Spill.Err != nil {
			which = fmt.Sprintf("The first %d bytes", r.Spill.Bytes)
		}
		fmt.Fprintf(&b, "%s of the output: %s\n", which, r.Spill.Path)
	}
	b.WriteString(r.Combined.Text())
	return b.String()
}
