package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// maxWait is the longest wait_s of a call. A host with a shorter limit gets no answer if a call waits for longer than
// that limit.
const maxWait = 10 * time.Minute

type runInput struct {
	Command  string  `json:"command" jsonschema:"a command line for the shell; it may have several lines"`
	Dir      string  `json:"dir,omitempty" jsonschema:"the directory to run it in; a relative path is relative to that of the server"`
	WaitS    float64 `json:"wait_s,omitempty" jsonschema:"how many seconds this call waits for the end; then the command goes on as a job"`
	TimeoutS float64 `json:"timeout_s,omitempty" jsonschema:"how many seconds the command may run"`
	IdleS    float64 `json:"idle_s,omitempty" jsonschema:"how many seconds the command may neither write nor work; 0 means no limit"`
	TTY      bool    `json:"tty,omitempty" jsonschema:"give it a terminal, for programs that ask for a password or draw on the screen; otherwise git, ssh, npm and others are told to ask nothing"`
	Input    *string `json:"input,omitempty" jsonschema:"all of its standard input; without it, the input stays open for job_write"`
	MaxChars int     `json:"max_chars,omitempty" jsonschema:"how many characters of output this call returns, from the beginning and the end"`
}

type readInput struct {
	Job      int     `json:"job" jsonschema:"the number of the job"`
	Cursor   *int64  `json:"cursor,omitempty" jsonschema:"the position to read from, for output that was left out; by default what was not returned yet"`
	WaitS    float64 `json:"wait_s,omitempty" jsonschema:"how many seconds to wait for the end of the command"`
	Until    string  `json:"until,omitempty" jsonschema:"a regular expression; a line that matches ends the wait, too, if it was not returned before the last answer"`
	MaxChars int     `json:"max_chars,omitempty" jsonschema:"how many characters of output this call returns"`
}

type writeInput struct {
	Job      int     `json:"job" jsonschema:"the number of the job"`
	Text     string  `json:"text,omitempty" jsonschema:"what to write, with \\n at the end of a line; in a terminal \\u0003 is Ctrl-C and \\u001b is Escape"`
	End      bool    `json:"end,omitempty" jsonschema:"end the input after that; in a terminal this types Ctrl-D"`
	WaitS    float64 `json:"wait_s,omitempty" jsonschema:"how many seconds to wait for the end, or for the next question"`
	MaxChars int     `json:"max_chars,omitempty" jsonschema:"how many characters of output this call returns"`
}

type signalInput struct {
	Job      int     `json:"job" jsonschema:"the number of the job"`
	Signal   string  `json:"signal" jsonschema:"interrupt is Ctrl-C; stop asks all processes to end and kills them after 5 s; kill does so at once"`
	WaitS    float64 `json:"wait_s,omitempty" jsonschema:"how many seconds to wait for the end"`
	MaxChars int     `json:"max_chars,omitempty" jsonschema:"how many characters of output this call returns"`
}

type listed struct {
	Job      int     `json:"job"`
	Command  string  `json:"command"`
	State    string  `json:"state" jsonschema:"running, waiting for input, or ended"`
	Waits    *waits  `json:"waits,omitempty"`
	ExitCode *int    `json:"exit_code,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Seconds  float64 `json:"seconds"`
	Unread   int64   `json:"unread_bytes" jsonschema:"output that no call has returned"`
}

type list struct {
	Jobs []listed `json:"jobs"`
}

// newServer returns a server with the tools.
func newServer(d *desk) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tooldeadline-shell", Version: "0"}, &mcp.ServerOptions{
		Instructions: "run runs a command. It returns when the command has ended or waits for input; otherwise the command goes on as a job after wait_s. " +
			"Each answer says what to call next. A command has no terminal unless tty is true.",
	})
	mcp.AddTool(s, &mcp.Tool{
		Name: "run", InputSchema: bounded[runInput](d, 30), OutputSchema: schemaOf[answer](),
		Description: "Runs a command in a shell and returns its output and exit code as soon as it has ended, or waits for input. A command that takes longer than wait_s goes on as a job. " +
			"Processes in the background end with the command: to keep a server running, run it without & and read it with job_read.",
	}, d.run)
	mcp.AddTool(s, &mcp.Tool{
		Name: "job_read", InputSchema: bounded[readInput](d, 30), OutputSchema: schemaOf[answer](), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		Description: "Waits for a job, and returns its new output and how it stands. It returns at once if the job has ended or waits for input, or with a cursor.",
	}, d.read)
	mcp.AddTool(s, &mcp.Tool{
		Name: "job_write", InputSchema: bounded[writeInput](d, 10), OutputSchema: schemaOf[answer](),
		Description: "Writes to the input of a job, as an answer to its question, and returns what it does then.",
	}, d.write)
	mcp.AddTool(s, &mcp.Tool{
		Name: "job_signal", InputSchema: bounded[signalInput](d, 10), OutputSchema: schemaOf[answer](),
		Description: "Interrupts, stops or continues a job with all of its processes.",
	}, d.signal)
	mcp.AddTool(s, &mcp.Tool{
		Name: "job_list", OutputSchema: schemaOf[list](), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		Description: "Lists your jobs, running and ended.",
	}, d.list)
	// These limits are for calls. The limits of a command are in its run call.
	mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: maxWait + time.Minute}, Interval: look})
	return s
}

func (d *desk) run(ctx context.Context, _ *mcp.CallToolRequest, in runInput) (*mcp.CallToolResult, answer, error) {
	j, err := d.start(ctx, in)
	if err != nil {
		return nil, answer{}, err
	}
	wait, stop := context.WithTimeout(ctx, seconds(in.WaitS))
	defer stop()
	if in.Input != nil {
		// An error is ignored: the command need not read its input.
		if _, _, err := j.Write(wait, []byte(*in.Input)); err == nil || errors.Is(err, io.ErrClosedPipe) {
			j.CloseInput()
		}
	}
	d.watch(wait, j, seconds(in.WaitS), wish{})
	if cancelled(ctx) {
		j.Stop() // the client never gets the number of the job
	}
	return d.answer(j, 0, in.MaxChars)
}

func (d *desk) read(ctx context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, answer, error) {
	j, err := d.get(in.Job)
	if err != nil {
		return nil, answer{}, err
	}
	re, err := pattern(in.Until)
	if err != nil {
		return nil, answer{}, err
	}
	if in.Cursor != nil {
		d.watch(ctx, j, seconds(in.WaitS), wish{from: *in.Cursor, match: re, output: true})
		s := j.Status()
		return d.answerWith(j, s, "", page(j, *in.Cursor, in.MaxChars))
	}
	told := d.account(j.ID)
	// The search begins with the output of the last answer, because the line may be in it.
	d.watch(ctx, j, seconds(in.WaitS), wish{from: told.last, match: re})
	return d.answer(j, told.next, in.MaxChars)
}

func (d *desk) write(ctx context.Context, _ *mcp.CallToolRequest, in writeInput) (*mcp.CallToolResult, answer, error) {
	j, err := d.get(in.Job)
	if err != nil {
		return nil, answer{}, err
	}
	if in.Text == "" && !in.End {
		return nil, answer{}, errors.New("want text, or end true")
	}
	from := d.account(j.ID).next
	begun := time.Now()
	most := max(seconds(in.WaitS), time.Second)
	limit, stop := context.WithTimeout(ctx, most)
	defer stop()
	write := j.Write
	if d.account(j.ID).tty { // in a terminal, control characters such as Ctrl-C act as keys
		write = j.Type
	}
	n, status, err := write(limit, []byte(in.Text))
	d.logger.Info("input", slog.Int("job", j.ID), slog.Int("bytes", n), slog.Bool("end", in.End)) // not the text
	var refused *procgroup.TypingError
	switch {
	case errors.As(err, &refused):
		return nil, answer{}, fmt.Errorf("%d of %d bytes of the text were typed: %w", n, len(in.Text), err)
	case errors.Is(err, io.ErrClosedPipe):
		return nil, answer{}, fmt.Errorf("the input of job %d is closed: it can be read, but not answered", j.ID)
	case err != nil && ctx.Err() == nil:
		return nil, answer{}, fmt.Errorf("job %d does not read its input: %d of %d bytes were written in %v. Call job_read to see what it does", j.ID, n, len(in.Text), most)
	}
	if err == nil && status.Result != nil && n < max(len(in.Text), 1) {
		why := fmt.Sprintf("Job %d has ended: nothing was written.", j.ID)
		if n > 0 {
			why = fmt.Sprintf("Job %d has ended: %d of %d bytes were written.", j.ID, n, len(in.Text))
		}
		return d.answerWith(j, status, why, whole(j, from, in.MaxChars))
	}
	if in.End {
		j.CloseInput()
	}
	d.watch(ctx, j, seconds(in.WaitS)-time.Since(begun), wish{from: from})
	return d.answer(j, from, in.MaxChars)
}

// signals maps the names of signals that a client may send, besides stop and interrupt, to the signals.
var signals = map[string]os.Signal{
	"kill": os.Kill, "hangup": syscall.SIGHUP, "quit": syscall.SIGQUIT, "terminate": syscall.SIGTERM, "continue": sigcont,
}

func (d *desk) signal(ctx context.Context, _ *mcp.CallToolRequest, in signalInput) (*mcp.CallToolResult, answer, error) {
	j, err := d.get(in.Job)
	if err != nil {
		return nil, answer{}, err
	}
	from := d.account(j.ID).next
	if status := j.Status(); status.Result != nil {
		return d.answerWith(j, status, fmt.Sprintf("Job %d had ended before the signal.", j.ID), whole(j, from, in.MaxChars))
	}
	d.logger.Info("signal", slog.Int("job", j.ID), slog.String("signal", in.Signal))
	switch in.Signal {
	case "stop":
		j.Stop()
	case "interrupt":
		_, err = j.Interrupt()
	default:
		_, err = j.Signal(signals[in.Signal])
	}
	if err != nil {
		return nil, answer{}, fmt.Errorf("signal %s: %w", in.Signal, err)
	}
	// If the command already waits for input, that is no effect of the signal. So the first wait ignores it.
	begun, ends := time.Now(), in.Signal == "stop" || in.Signal == "kill" // then the call waits only for the end
	first := seconds(in.WaitS)
	if !ends {
		first = min(first, look)
	}
	d.watch(ctx, j, first, wish{from: j.Read(math.MaxInt64, 0).Next, signalled: true, output: !ends})
	if !ends {
		d.watch(ctx, j, seconds(in.WaitS)-time.Since(begun), wish{from: from})
	}
	return d.answer(j, from, in.MaxChars)
}

func (d *desk) list(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, list, error) {
	all := list{Jobs: []listed{}}
	for _, j := range d.jobs.List() {
		var a answer
		a.Seconds = time.Since(j.Started).Seconds()
		a.state(j, j.Status(), false)
		end := j.Read(math.MaxInt64, 0).Next
		all.Jobs = append(all.Jobs, listed{Job: j.ID, Command: j.Args[len(j.Args)-1], State: a.State, Waits: a.Waits, ExitCode: a.ExitCode,
			Reason: a.Reason, Seconds: a.Seconds, Unread: end - d.account(j.ID).next})
	}
	return nil, all, nil
}
