package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Real limits are minutes long; see timeout.Default. These are short so that the program
// ends within seconds, and long enough for a slow machine to hash one file in time.
const (
	idleLimit  = time.Second
	totalLimit = time.Minute

	longRun     = 3 * idleLimit           // how long the first run works
	stuckAfter  = 300 * time.Millisecond  // when the second run gets stuck
	shortTotal  = 1500 * time.Millisecond // the total limit of the third run
	cancelAfter = 500 * time.Millisecond  // when the fourth is cancelled without a terminal
	waitForUser = 6 * time.Second         // when the fourth is cancelled with a terminal, if Ctrl-C is not pressed

	untilStopped = time.Hour // longer than any limit above
)

// An outcome holds the result and the figures of a run.
type outcome struct {
	limits timeout.Config
	result hashed // partial if err is a *timeout.Error
	err    error

	elapsed    time.Duration
	longestGap time.Duration
	beats      uint64
	abandoned  bool
	stack      []byte // where the tool hung
}

// supervise runs the tool for d under limits. The call of timeout.Do is all that is
// needed. The hook gets the figures of a run that succeeds; the error of a stopped run
// has them already.
func supervise(ctx context.Context, limits timeout.Config, fsys fs.FS, d time.Duration) outcome {
	o := outcome{limits: limits}
	o.result, o.err = timeout.Do(ctx, func(ctx context.Context) (hashed, error) {
		return hashFor(ctx, fsys, d)
	}, limits, timeout.WithName("hash"), timeout.WithHooks(timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) {
			o.elapsed, o.longestGap, o.beats = s.Elapsed, s.LongestGap, s.Beats
		},
	}))

	var stopped *timeout.Error
	if errors.As(o.err, &stopped) {
		o.elapsed, o.longestGap, o.beats = stopped.Elapsed, stopped.LongestGap, stopped.Beats
		o.abandoned, o.stack = stopped.Abandoned, stopped.Stack
	}
	return o
}

// A runCase is one of the four runs.
type runCase struct {
	title      string
	about      string
	run        func(ctx context.Context, out *printer) outcome
	check      func(o outcome) error // reports what is wrong with the outcome
	takesCtrlC bool                  // Ctrl-C ends this run instead of the program
}

// cases returns the four runs. pipe returns a file whose Read blocks, and a function that closes it.
func cases(fsys fs.FS, pipe func() (read fs.File, end func(), _ error)) []runCase {
	limits := timeout.Config{Total: totalLimit, Idle: idleLimit}
	return []runCase{
		{
			title: "Long, but alive",
			about: fmt.Sprintf("It works for %v s, %d times the idle limit, and keeps beating.", longRun.Seconds(), longRun/idleLimit),
			run: func(ctx context.Context, _ *printer) outcome {
				return supervise(ctx, limits, fsys, longRun)
			},
			check: checkAlive,
		},
		{
			title: "Stuck",
			about: fmt.Sprintf("After %v s the next files are a pipe that nobody writes to: reading it blocks for ever.", stuckAfter.Seconds()),
			run: func(ctx context.Context, _ *printer) outcome {
				return runStuck(ctx, limits, fsys, pipe)
			},
			check: checkStuck,
		},
		{
			title: "Alive, but endless",
			about: fmt.Sprintf("It keeps beating and would never end. The total limit of this run is %v s.", shortTotal.Seconds()),
			run: func(ctx context.Context, _ *printer) outcome {
				limits := timeout.Config{Total: shortTotal, Idle: idleLimit}
				return supervise(ctx, limits, fsys, untilStopped)
			},
			check: checkEndless,
		},
		{
			title: "Aborted by the user",
			about: "It keeps beating, until somebody cancels the context that it was started with.",
			run: func(ctx context.Context, out *printer) outcome {
				return runAborted(ctx, limits, fsys, out)
			},
			check:      checkAborted,
			takesCtrlC: true,
		},
	}
}

func runStuck(ctx context.Context, limits timeout.Config, fsys fs.FS, pipe func() (fs.File, func(), error)) outcome {
	r, end, err := pipe()
	if err != nil {
		return outcome{limits: limits, err: err}
	}
	defer end()
	stuck := stuckFS{FS: fsys, after: time.Now().Add(stuckAfter), stuck: r}
	return supervise(ctx, limits, stuck, untilStopped)
}

func osPipe() (read fs.File, end func(), _ error) {
	r, w, err := os.Pipe()
	return r, func() { r.Close(); w.Close() }, err
}

func runAborted(ctx context.Context, limits timeout.Config, fsys fs.FS, out *printer) outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !onTerminal() {
		why := errors.New("the program cancelled it, for want of a terminal")
		defer time.AfterFunc(cancelAfter, func() { cancel(why) }).Stop()
		return supervise(ctx, limits, fsys, untilStopped)
	}
	out.printf("   Press Ctrl-C now. (After %v s the program cancels by itself.) ", waitForUser.Seconds())
	why := errors.New("the program cancelled it, for want of a Ctrl-C")
	defer time.AfterFunc(waitForUser, func() { cancel(why) }).Stop()
	o := supervise(ctx, limits, fsys, untilStopped)
	out.printf("\n") // the terminal shows "^C" after the prompt
	return o
}

// onTerminal reports whether a person who can press Ctrl-C is likely to be there.
func onTerminal() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		info, err := f.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return false
		}
	}
	return true
}

func checkAlive(o outcome) error {
	switch {
	case o.err != nil:
		return fmt.Errorf("it should have succeeded; are there files that take longer than %v?", idleLimit)
	case o.elapsed < longRun:
		return fmt.Errorf("it should have worked for %v", longRun)
	}
	return checkWork(o)
}

func checkStuck(o outcome) error {
	switch {
	case !errors.Is(o.err, timeout.ErrIdle):
		return errors.New("the idle limit should have stopped it")
	case !strings.Contains(string(o.stack), "hashFile"):
		return errors.New("the stack should show that it hangs in hashFile")
	}
	return checkWork(o)
}

func checkEndless(o outcome) error {
	if !errors.Is(o.err, timeout.ErrTotal) {
		return errors.New("the total limit should have stopped it")
	}
	return checkWork(o)
}

// checkAborted returns an error unless the run was aborted. It does not
// ask for work, because Ctrl-C may come before the first file.
func checkAborted(o outcome) error {
	if !errors.Is(o.err, timeout.ErrAborted) {
		return errors.New("cancelling should have stopped it")
	}
	return nil
}

func checkWork(o outcome) error {
	if o.beats == 0 || (o.result.files == 0 && o.result.bytes == 0) {
		return errors.New("there should be heartbeats, and something that has been hashed")
	}
	return nil
}
