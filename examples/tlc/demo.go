package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// limitsOfDemo are short, so that the demo ends soon.
type limitsOfDemo struct {
	idle       time.Duration
	total      time.Duration // for the tool that is to exceed it
	abortAfter time.Duration // after the first progress
	every      time.Duration // between two lines of progress
}

var demoLimits = limitsOfDemo{
	idle:       1500 * time.Millisecond,
	total:      4 * time.Second,
	abortAfter: 500 * time.Millisecond,
	every:      500 * time.Millisecond,
}

// A demoCase is one call of a tool.
type demoCase struct {
	title, about string
	tool         tool
	model        string
	checker      *checker
	request      time.Duration // the limit that is asked for
	abort        bool
	want         int // the exit code
}

func (l limitsOfDemo) cases(c *checker) []demoCase {
	missing := *c
	missing.spin = "spin-that-is-not-there"
	check, explore, silent := tools["check"], tools["explore"], tools["check"]
	silent.search.reportEvery = 0
	return []demoCase{
		{
			title: "Success", about: "A correct model that is small enough to search every state.",
			tool: check, model: "correct", checker: c,
		},
		{
			title: "The model is wrong", about: "Philosophers at a table who can all wait for each other. Spin tells how it comes to that.",
			tool: check, model: "deadlock", checker: c, want: 12,
		},
		{
			title: "Idle timeout", about: "A search that would take years and prints nothing, so that nobody can tell whether it hangs.",
			tool: silent, model: "huge", checker: c, want: timeout.ExitTimeout,
		},
		{
			title: "Total timeout", about: "The same with progress, which is a sign of life. The request asks for a minute. That is above\n   the ceiling of this policy, so it gets the ceiling, and a warning is logged.",
			tool: explore, model: "huge", checker: c, request: time.Minute, want: timeout.ExitTimeout,
		},
		{
			title: "Abort", about: "The same, and somebody cancels, as your Ctrl-C does.",
			tool: explore, model: "huge", checker: c, abort: true, want: timeout.ExitAborted,
		},
		{
			title: "The command's own failure", about: "Something that is not a model. Spin says so and ends with a code of its own.",
			tool: check, model: "", checker: c, want: 1,
		},
		{
			title: "Not installed", about: "Spin under a name that does not exist.",
			tool: check, model: "correct", checker: &missing, want: 127,
		},
	}
}

// policy returns the real policy with these limits.
func (l limitsOfDemo) policy(out *printer) *policy.Policy {
	return &policy.Policy{
		Tools: map[string]policy.Tool{
			"tlc_check":   {Limits: &timeout.Config{Idle: l.idle}},
			"tlc_explore": {Limits: &timeout.Config{Total: time.Hour, Idle: l.idle}, MaxTotal: l.total},
		},
		Lookup: func(string) (string, bool) { return "", false },
		Logger: newLogger(logLines{out}),
	}
}

// logLines makes the log a part of the report.
type logLines struct{ out *printer }

func (l logLines) Write(b []byte) (int, error) {
	l.out.row("log", "%s", b[:max(len(b)-1, 0)])
	return len(b), nil
}

// demo runs all cases. Its error is nil if each one ended as it should.
func demo(ctx context.Context, c *checker, l limitsOfDemo, out *printer) error {
	out.printf(`A model checker searches every state that a model of a program can get into. It may take
a second or a year, and nobody knows beforehand. So the tools that call it have limits:
   total   for how long it may run in all
   idle    for how long it may run without a sign of life, which is any output
They are usually minutes; here they are seconds. The exit codes: 0 success, 12 the model is
wrong, 124 stopped by a limit, 127 not installed, 130 aborted, others are the command's own.

What follows are %d calls.
`, len(l.cases(c)))
	if err := c.find(); err != nil {
		out.printf("\n%v\n", err)
		return err
	}
	begun := time.Now()
	tempDir, err := os.MkdirTemp(c.tempDir, "tlc-demo-")
	if err != nil {
		out.printf("\n%v\n", err)
		return err
	}
	defer os.RemoveAll(tempDir)
	inside := *c
	inside.tempDir = tempDir

	var wrong []int
	for i, dc := range l.cases(&inside) {
		out.printf("\n%d. %s\n   %s\n\n", i+1, dc.title, dc.about)
		f, err := dc.run(ctx, l, out)
		out.finding(f, err)
		out.output(f, true)
		if ctx.Err() != nil {
			out.printf("\nInterrupted; the rest is left out.\n")
			return err
		}
		if code := timeout.ExitCode(err); code != dc.want || (f.result != nil && len(f.result.Survivors) > 0) {
			out.row("NOT OK", "the exit code should be %d, with nothing left alive", dc.want)
			wrong = append(wrong, i+1)
		}
	}
	if files, err := os.ReadDir(tempDir); err != nil || len(files) > 0 {
		out.printf("\nNOT OK: temporary files are left: %v %v\n", files, err)
		return errors.New("temporary files are left")
	}
	if len(wrong) > 0 {
		out.printf("\nNOT OK: not every call ended as it should, see %v.\n", wrong)
		return errors.New("not every call ended as it should")
	}
	out.printf("\nAll ended as they should, in %.1f s, and no process and no temporary file is left.\n", time.Since(begun).Seconds())
	return nil
}

func (dc demoCase) run(ctx context.Context, l limitsOfDemo, out *printer) (finding, error) {
	m := model{"(none)", []byte("This is not a model.\n")}
	if dc.model != "" {
		var err error
		if m, err = loadModel(nil, dc.model); err != nil {
			return finding{}, err
		}
	}
	if dc.abort {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		out.onProgress(func() { time.AfterFunc(l.abortAfter, cancel) })
		defer out.onProgress(nil)
	}
	by := caller{policy: l.policy(out), request: dc.request, every: l.every}
	return dc.tool.call(ctx, by, dc.checker, m, out)
}
