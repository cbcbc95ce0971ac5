package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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

// An outcome is what the caller of a run gets.
type outcome struct {
	result  hashed // partial if err is a *timeout.Error
	err     error
	figures timeout.Figures
}

// supervise runs the tool for d under limits. The call of timeout.Do is all that is
// needed. The hook gets the figures, also those of a run that succeeds.
func supervise(ctx context.Context, limits timeout.Config, fsys fs.FS, d time.Duration) (o outcome) {
	o.result, o.err = timeout.Do(ctx, func(ctx context.Context) (hashed, error) {
		return hashFor(ctx, fsys, d)
	}, limits, timeout.WithName("hash"), timeout.WithHooks(timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) { o.figures = s.Figures },
	}))
	return o
}

// A runCase is one of the four runs.
type runCase struct {
	title, about string
	run          func(ctx context.Context, out io.Writer) outcome
	want         error // what errors.Is has to find in the error; nil means success
}

// cases returns the four runs. pipe returns a file whose Read blocks, and a function that closes it.
func cases(fsys fs.FS, pipe func() (read fs.File, end func(), _ error)) []runCase {
	limits := timeout.Config{Total: totalLimit, Idle: idleLimit}
	return []runCase{{
		title: "Long, but alive",
		about: fmt.Sprintf("It works for %v, %d times the idle limit, and keeps beating.", longRun, longRun/idleLimit),
		run: func(ctx context.Context, _ io.Writer) outcome {
			return supervise(ctx, limits, fsys, longRun)
		},
	}, {
		title: "Stuck",
		about: fmt.Sprintf("After %v the next files are a pipe that nobody writes to: reading it blocks for ever.", stuckAfter),
		run: func(ctx context.Context, _ io.Writer) outcome {
			r, end, err := pipe()
			if err != nil {
				return outcome{err: err}
			}
			defer end()
			return supervise(ctx, limits, stuckFS{FS: fsys, after: time.Now().Add(stuckAfter), stuck: r}, untilStopped)
		},
		want: timeout.ErrIdle,
	}, {
		title: "Alive, but endless",
		about: fmt.Sprintf("It keeps beating and would never end. The total limit of this run is %v.", shortTotal),
		run: func(ctx context.Context, _ io.Writer) outcome {
			return supervise(ctx, timeout.Config{Total: shortTotal, Idle: idleLimit}, fsys, untilStopped)
		},
		want: timeout.ErrTotal,
	}, {
		title: "Aborted by the user",
		about: "It keeps beating, until somebody cancels the context that it was started with.",
		run: func(ctx context.Context, out io.Writer) outcome {
			after, why := cancelAfter, errors.New("the program cancelled it, for want of a terminal")
			if onTerminal() {
				fmt.Fprintf(out, "   Press Ctrl-C now. (After %v the program cancels by itself.) ", waitForUser)
				defer fmt.Fprintln(out) // the terminal shows "^C" after the prompt
				after, why = waitForUser, errors.New("the program cancelled it, for want of a Ctrl-C")
			}
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer time.AfterFunc(after, func() { cancel(why) }).Stop()
			return supervise(ctx, limits, fsys, untilStopped)
		},
		want: timeout.ErrAborted,
	}}
}

func osPipe() (read fs.File, end func(), _ error) {
	r, w, err := os.Pipe()
	return r, func() { r.Close(); w.Close() }, err
}

// stuckFS is a file tree that gets stuck, as on a dead network share: a file that is opened
// after a certain instant never yields a byte.
type stuckFS struct {
	fs.FS
	after time.Time
	stuck fs.File
}

func (s stuckFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || time.Now().Before(s.after) {
		return f, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return f, nil // directories do not change
	}
	return s.stuck, f.Close()
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

// showCases runs all cases and prints the outcome of each. It returns the exit code, and an error if it cannot print.
func showCases(ctx context.Context, root string, all []runCase, stdout io.Writer) (code int, err error) {
	out := bufio.NewWriter(stdout) // Flush returns the first error of all writes
	fmt.Fprintf(out, `One tool, run four times under the limits of package timeout.

The tool hashes every file below
   %s
round after round, %d at once. It sends a heartbeat after each file, and after each MiB
of a big one, and knows nothing of the limits that it runs under:
   idle limit   %4v   the longest time without a heartbeat
   total limit  %4v   the longest time in all, whatever the heartbeats
(Both are short, so that this is over in seconds. They are usually minutes.)

The exit codes: 0 success, 124 stopped by a limit, 130 aborted.
`, root, width, idleLimit, totalLimit)
	start := time.Now()
	for i, c := range all {
		fmt.Fprintf(out, "\n%d. %s\n   %s\n\n", i+1, c.title, c.about)
		if err := out.Flush(); err != nil {
			return 1, err
		}
		o := c.run(ctx, stdout)
		show(out, o)
		if ctx.Err() != nil && c.want != timeout.ErrAborted {
			fmt.Fprintf(out, "\nInterrupted in run %d; the runs after it are left out.\n", i+1)
			code = timeout.ExitAborted
			break
		}
		if !errors.Is(o.err, c.want) {
			row(out, "as expected", "NO: want the error %v", c.want)
			code = 1
			continue
		}
		row(out, "as expected", "yes")
	}
	if code == 0 {
		fmt.Fprintf(out, "\nAll four runs ended as they should, in %.1f s.\n", time.Since(start).Seconds())
	}
	if err := out.Flush(); err != nil {
		return 1, err
	}
	return code, nil
}

func row(out io.Writer, label, format string, args ...any) {
	fmt.Fprintf(out, "   %-16s %s\n", label, fmt.Sprintf(format, args...))
}

func show(out io.Writer, o outcome) {
	f, kept := o.figures, "result"
	if o.err != nil {
		kept = "partial result"
	}
	row(out, "error", "%v", o.err)
	row(out, "exit code", "%d", timeout.ExitCode(o.err))
	row(out, "elapsed", "%v of %v (total limit)", f.Elapsed.Round(time.Millisecond), f.Limits.Total)
	row(out, "longest silence", "%v of %v (idle limit)", f.LongestGap.Round(time.Millisecond), f.Limits.Idle)
	row(out, "heartbeats", "%d", f.Beats)
	row(out, kept, "%d files hashed, %.1f MiB", o.result.files, float64(o.result.bytes)/(1<<20))
	row(out, "last file", "%x...  %s", o.result.sum[:4], o.result.last)
	if stopped := (*timeout.Error)(nil); errors.As(o.err, &stopped) {
		for _, call := range calls(string(stopped.Stack)) {
			row(out, "it hung in", "%s", call)
		}
	}
}

// calls returns the calls of the tool in the stack of a worker, innermost first. A stack has two lines for each call,
// "main.hashFile(0x2a, ...)" and "\t/src/hash.go:144 +0x4f".
func calls(stack string) (all []string) {
	for trace := range strings.SplitSeq(stack, "\n\n") {
		if !strings.Contains(trace, "\ncreated by golang.org/x/sync/errgroup.") {
			continue // the tool's own goroutine only waits for its workers
		}
		name := ""
		for line := range strings.Lines(trace) {
			where, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(line)), " ")
			if strings.HasPrefix(where, "hash.go:") {
				all = append(all, name+" "+where)
			}
			name, _, _ = strings.Cut(path.Base(line), "(")
		}
		break
	}
	return all
}
