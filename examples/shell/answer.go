package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// The values of State in an answer.
const (
	running = "running"
	waiting = "waiting for input"
	ended   = "ended"
)

// An answer is the structured result of a call: the state of a job, its output, and what to call next. The text of the
// result says the same, because some hosts show the model only the one or the other.
type answer struct {
	Job       int      `json:"job" jsonschema:"the number of the job, for the other tools"`
	State     string   `json:"state" jsonschema:"running, waiting for input, or ended"`
	Waits     *waits   `json:"waits,omitempty" jsonschema:"what the command waits for"`
	ExitCode  *int     `json:"exit_code,omitempty" jsonschema:"of a command that has ended: its own, 128 and the number of the signal that ended it, or 124 if a limit stopped it"`
	Reason    string   `json:"reason,omitempty" jsonschema:"why the command has ended: exited, or what stopped it"`
	Message   string   `json:"message,omitempty" jsonschema:"what stopped the command, or why the call had no effect"`
	Leftovers string   `json:"leftovers,omitempty" jsonschema:"which of its processes were killed when it had ended, or run on; the exit code does not show it"`
	Seconds   float64  `json:"seconds" jsonschema:"how long the command has been running, or ran"`
	Output    string   `json:"output" jsonschema:"what it has written since the last answer, both streams in order"`
	LeftOut   *leftOut `json:"left_out,omitempty" jsonschema:"output that this answer leaves out"`
	Lost      int64    `json:"lost_bytes,omitempty" jsonschema:"output before that is no longer kept, in bytes"`
	File      string   `json:"file,omitempty" jsonschema:"a file with the output from the beginning, until the job is forgotten"`
	Cursor    int64    `json:"cursor" jsonschema:"the position after this output"`
	Next      string   `json:"next,omitempty" jsonschema:"what can be done now"`
}

type waits struct {
	Certain bool   `json:"certain" jsonschema:"nothing but input makes it go on; otherwise it probably waits"`
	Secret  bool   `json:"secret" jsonschema:"what it asks for is not shown, as a password"`
	Prompt  string `json:"prompt,omitempty"`
}

type leftOut struct {
	Bytes  int64 `json:"bytes"`
	Lines  int   `json:"lines,omitempty"`
	Cursor int64 `json:"cursor" jsonschema:"job_read with this cursor returns it"`
}

// answer returns the result of a call about a job, with its output after a position. It asks for the status first: if
// the job has ended, the output is complete.
func (d *desk) answer(j *job.Job, from int64, most int) (*mcp.CallToolResult, answer, error) {
	s := j.Status()
	return d.answerWith(j, s, "", whole(j, from, most))
}

// answerWith returns the result of a call with the state s of the job and the excerpt e of its output. why says why the
// call had no effect, and is empty if it had one.
func (d *desk) answerWith(j *job.Job, s job.Status, why string, e excerpt) (*mcp.CallToolResult, answer, error) {
	d.tell(j.ID, e.next)
	told := d.account(j.ID)
	a := answer{Job: j.ID, Seconds: time.Since(j.Started).Seconds(), Lost: e.lost, Cursor: e.next}
	a.state(j, s, told.tty)
	a.Message = strings.TrimSpace(why + " " + a.Message)
	a.Output = e.head
	if e.left > 0 {
		a.LeftOut = &leftOut{Bytes: e.left, Lines: e.lines, Cursor: e.at}
		lines := ""
		if e.lines > 0 {
			lines = fmt.Sprintf("%d lines, ", e.lines)
		}
		a.Output = strings.TrimSuffix(a.Output, "\n") + fmt.Sprintf("\n[%s%d bytes left out; job_read with {\"job\":%d,\"cursor\":%d} returns them]\n", lines, e.left, j.ID, e.at) + e.tail
	}
	if e.lost > 0 {
		a.Output = fmt.Sprintf("[%d bytes before this are no longer kept]\n", e.lost) + a.Output
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text()}}}, a, nil
}

// state sets the fields for the state of the job, and Next.
func (a *answer) state(j *job.Job, s job.Status, tty bool) {
	write, signal := fmt.Sprintf(`job_write with {"job":%d,"text":"...\n"}`, j.ID), fmt.Sprintf(`job_signal with {"job":%d,"signal":"stop"}`, j.ID)
	switch s.State {
	case job.Waiting:
		a.State = waiting
		a.Waits = &waits{Certain: s.Input.Certain, Secret: s.Input.Secret, Prompt: s.Input.Prompt}
		a.Next = fmt.Sprintf("To answer, call %s. To end its input, call job_write with {\"job\":%d,\"end\":true}. To give up, call %s.", write, j.ID, signal)
		if s.Input.Secret {
			a.Next = fmt.Sprintf("It asks for a secret: ask your user, and do not make one up. To answer, call %s. To give up, call %s.", write, signal)
		}
	case job.Running:
		a.State = running
		a.Next = fmt.Sprintf("To wait for more, call job_read with {\"job\":%d}. To stop it, call %s.", j.ID, signal)
		if tty {
			a.Next += " If its last line asks for something, call " + write + "."
		}
	default:
		r := s.Result
		a.State, a.ExitCode, a.Reason, a.Message, a.Seconds, a.File = ended, &r.ExitCode, r.Reason.Error(), r.Message, r.Elapsed.Seconds(), r.Spill.Path
		if r.Reason == procgroup.StoppedByTerminal {
			a.Next = "A process used the terminal from the background. Run it in the foreground, or without tty."
		}
		if r.Input.Pid != 0 && r.Reason != procgroup.WaitingForInput {
			a.Message += " It " + r.Input.String() + "."
		}
		a.Leftovers = strings.TrimSpace(r.Leftovers())
		if len(r.Killed.Processes) > 0 || r.Reason == procgroup.Exited && r.PipeHeld {
			a.Next = "What a command leaves running in the background is ended with it. To keep a program running, run it without & and nohup: it is a job then."
		}
		a.Message = strings.TrimSpace(a.Message)
	}
}

// text returns the answer as text.
func (a *answer) text() string {
	var b strings.Builder
	switch {
	case a.State == ended && a.Reason == procgroup.Exited.Error():
		fmt.Fprintf(&b, "Exit code %d after %.1f s.", *a.ExitCode, a.Seconds)
	case a.State == ended:
		fmt.Fprintf(&b, "Stopped: %s, exit code %d, after %.1f s.", a.Reason, *a.ExitCode, a.Seconds)
	case a.Waits != nil:
		word := "probably waits"
		if a.Waits.Certain {
			word = "waits"
		}
		fmt.Fprintf(&b, "Job %d %s for input after %.1f s", a.Job, word, a.Seconds)
		if a.Waits.Prompt == "" {
			b.WriteByte('.')
		} else {
			fmt.Fprintf(&b, ": %s", a.Waits.Prompt)
		}
	default:
		fmt.Fprintf(&b, "Job %d is running after %.1f s.", a.Job, a.Seconds)
	}
	if a.Message != "" {
		b.WriteString(" " + a.Message)
	}
	b.WriteByte('\n')
	if a.Leftovers != "" {
		b.WriteString(a.Leftovers + "\n")
	}
	if a.File != "" && a.LeftOut != nil {
		fmt.Fprintf(&b, "All of the output: %s\n", a.File)
	}
	if a.Next != "" {
		b.WriteString(a.Next + "\n")
	}
	if a.Output != "" {
		b.WriteString("\n" + a.Output)
	} else {
		b.WriteString("\n[no output]\n")
	}
	return b.String()
}
