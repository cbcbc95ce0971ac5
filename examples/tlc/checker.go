package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	// compileLimit is the limit of the C compiler, which takes a second or two.
	compileLimit = time.Minute
	// maxOutput is how many bytes of a command's output are kept: the last ones, which have the
	// summary.
	maxOutput = 64 << 10
	// memoryLimit is the memory for the states in MiB; Spin ends by itself when it is reached.
	memoryLimit = 2048
)

// A search says how to look for errors.
type search struct {
	depth       int  // how many steps deep, at most
	complete    bool // it is an error if not everything could be searched
	bitstate    bool // keep a few bits of each state: little memory, but not complete
	reportEvery int  // how many states between two lines of progress; 0 is no progress
}

// A finding is the result of a call of a tool, complete or not.
type finding struct {
	command string            // the last command that was run
	result  *procgroup.Result // of that command, nil if it did not start
	summary summary           // of the search, as far as it got
	trace   string            // the way into the error, if there is one
	elapsed time.Duration
}

// A checker is Spin and a C compiler. Its methods do not know the limits, which come with
// the context.
type checker struct {
	spin, cc  string
	optimize  string        // a flag of the compiler
	env       []string      // in addition to that of this process
	tempDir   string        // "" is the system's
	killGrace time.Duration // 0 is the default
}

func newChecker(lookup func(string) (string, bool)) *checker {
	c := &checker{spin: "spin", cc: "cc", optimize: "-O2"}
	if s, ok := lookup("SPIN"); ok && s != "" {
		c.spin = s
	}
	if s, ok := lookup("CC"); ok && s != "" {
		c.cc = s
	}
	return c
}

// find returns an error that says what to install if a program is missing. The error has the exit code
// for that, 126 or 127, in its tree.
func (c *checker) find() error {
	for _, program := range []string{c.spin, c.cc} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w\nThis needs Spin and a C compiler. On Debian and Ubuntu: apt-get install spin gcc. "+
				"On macOS: brew install spin. If they have other names, set SPIN and CC", err)
		}
	}
	return nil
}

// check searches for errors in m, in four steps: Spin generates a verifier in C, the compiler makes a
// program of it, that program searches, and if it finds an error, Spin shows the way there. The
// finding has the results so far, even with an error.
func (c *checker) check(ctx context.Context, m model, s search, out *printer) (f finding, err error) {
	if err := c.find(); err != nil {
		return f, err
	}
	dir, err := os.MkdirTemp(c.tempDir, "tlc-")
	if err != nil {
		return f, err
	}
	// When a command has ended, so has everything that it has started; nothing writes here any more.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "model.pml"), m.source, 0o600),
		os.WriteFile(filepath.Join(dir, "stop.c"), stopC, 0o600))
	if err != nil {
		return f, err
	}
	j := job{checker: c, dir: dir, out: out}
	err = j.check(ctx, s)
	return j.finding, err
}

// A job is one call of check.
type job struct {
	*checker
	dir string
	out *printer
	finding
}

func (j *job) check(ctx context.Context, s search) error {
	if err := j.run(ctx, "Spin", j.spin, []string{"-a", "model.pml"}); err != nil {
		return err
	}

	// A compiler says nothing while it works, so the beat is made on its behalf. That
	// leaves the idle limit blind to a compiler that hangs; it has a total of its own.
	err := heartbeat.Keep(ctx, 0, func(ctx context.Context) error {
		return j.run(ctx, "C compiler", j.cc, append([]string{j.optimize}, s.compileArgs()...),
			procgroup.Limits{Total: compileLimit})
	})
	if err != nil {
		return err
	}

	// Each chunk of output is a heartbeat by itself. A progress line is one that carries the progress,
	// for the terminal and for the client of a server.
	err = j.run(ctx, "Spin", filepath.Join(j.dir, "pan"+exeSuffix()), s.verifierArgs(),
		procgroup.Capture{Tail: maxOutput, Each: procgroup.Lines(func(line string, stderr bool) {
			if p, ok := parseProgress(line); ok && !stderr {
				progress.Report(ctx, p.update())
			}
		})})
	if j.result != nil {
		j.summary = parseSummary(j.result.Stdout.String())
	}
	if err != nil {
		return err
	}

	// The verifier ends with 0 also if it has found an error.
	switch sum := j.summary; {
	case !sum.found:
		return errors.New("the verifier printed no summary")
	case sum.errors > 0:
		return errors.Join(&modelError{sum.what}, j.replay(ctx))
	case s.complete && sum.incomplete != "":
		return fmt.Errorf("the check is not complete: %s", sum.incomplete)
	}
	return nil
}

// run runs one command, with the limits of the execution that ctx belongs to.
func (j *job) run(ctx context.Context, name, program string, args []string, opts ...procgroup.Option) (err error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = j.dir
	cmd.Env = append(cmd.Environ(), j.env...)
	opts = append([]procgroup.Option{procgroup.Capture{Tail: maxOutput}}, opts...)
	opts = append(opts, procgroup.WithOptions(timeout.WithName(name)), procgroup.Stop{Grace: j.killGrace})
	j.command = commandLine(program, args)
	j.out.command(j.command)
	j.result, err = procgroup.Run(ctx, cmd, opts...)
	return err
}

// replay has Spin show the way into the error.
func (j *job) replay(ctx context.Context) error {
	searched := j.finding
	err := j.run(ctx, "Spin", j.spin, []string{"-t", "-p", "model.pml"})
	if err == nil {
		searched.trace = j.result.Stdout.String()
		j.finding = searched // its output matters, and not that of the replay
	}
	return err
}

// A modelError says what is wrong with the model.
type modelError struct{ what string }

func (e *modelError) Error() string { return "the model is wrong: " + e.what }

// ExitCode returns TLC's exit code for an error in a model; timeout.ExitCode finds it.
func (e *modelError) ExitCode() int { return 12 }

func (s search) compileArgs() []string {
	args := []string{"-w", "-DSAFETY", "-DMEMLIM=" + strconv.Itoa(memoryLimit)}
	if s.bitstate {
		args = append(args, "-DBITSTATE")
	}
	if every := s.reportEvery; every > 0 {
		args = append(args, "-DFREQ="+strconv.Itoa(every))
	} else {
		args = append(args, "-DFREQ=1e18") // never
	}
	return append(args, "-o", "pan"+exeSuffix(), "stop.c")
}

func (s search) verifierArgs() []string {
	table := "-w22" // 2 to the power of 22 entries, in 32 MiB
	if s.bitstate {
		table = "-w30" // that many bits, in 128 MiB
	}
	return []string{"-m" + strconv.Itoa(s.depth), table}
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
