package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// printer writes the report. Progress comes from another goroutine, so it has a lock. It
// remembers the first error and writes nothing after it.
type printer struct {
	w    io.Writer
	mu   sync.Mutex
	err  error
	live bool // progress is wanted

	first func() // called at the next progress, if it is not nil
}

func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLocked(format, args...)
}

func (p *printer) printLocked(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) row(label, format string, args ...any) {
	p.printf("   %-11s %s\n", label, fmt.Sprintf(format, args...))
}

func (p *printer) writeError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// start announces a call of a tool.
func (p *printer) start(name string, m model, limits timeout.Config) {
	p.row("tool", "%s, model %s", name, m.name)
	p.row("limits", "total %s, idle %s", seconds(limits.Total), seconds(limits.Idle))
}

func (p *printer) command(line string) { p.row("runs", "%s", line) }

// beginProgress lets progress be printed until end is called: a relay does not wait for
// the delivery that is under way when it is stopped.
func (p *printer) beginProgress() (end func()) {
	set := func(live bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.live = live
	}
	set(true)
	return func() { set(false) }
}

func (p *printer) progress(elapsed time.Duration, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		if p.first != nil {
			p.first()
			p.first = nil
		}
		p.printLocked("   %-11s %6.1f s   %s\n", "progress", elapsed.Seconds(), at)
	}
}

// onProgress has fn called once, when there is progress.
func (p *printer) onProgress(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = fn
}

// finding prints how a call has ended.
func (p *printer) finding(f finding, err error) {
	r := f.result
	switch {
	case err != nil:
		for i, line := range strings.Split(describe(f, err), "\n") {
			label := ""
			if i == 0 {
				label = "result"
			}
			p.row(label, "%s", line)
		}
	case f.summary.incomplete != "":
		p.row("result", "no error found, but not everything was searched: %s", f.summary.incomplete)
	default:
		p.row("result", "no error found, and everything was searched")
	}
	p.row("exit code", "%d", timeout.ExitCode(err))
	p.row("elapsed", "%.1f s", f.elapsed.Seconds())
	if f.summary.found {
		p.row("searched", "%s states, to depth %d", count(f.summary.states), f.summary.depth)
	}
	if r == nil {
		return
	}
	if r.Reason != procgroup.Exited && r.State != nil {
		how := "it was asked to end, and did"
		switch {
		case r.Escalated:
			how = "it was asked to end, did not, and was killed"
		case r.Reason == procgroup.Aborted:
			how = "it was killed at once"
		}
		p.row("the process", "%s (%s)", how, r.State)
	}
	left := "none"
	if len(r.Survivors) > 0 {
		left = fmt.Sprint("processes ", r.Survivors)
	}
	p.row("left alive", "%s (held together by: %s)", left, r.Contained)
}

// describe returns the error in words. For a command that was stopped it is the message
// of its result, as in "Spin process timed out after 120000ms."
func describe(f finding, err error) string {
	var exit interface{ ExitCode() int }
	switch {
	case f.result == nil:
	case f.result.Message != "":
		return f.result.Message
	case f.summary.errors == 0 && errors.As(err, &exit):
		return fmt.Sprintf("%s failed: %v", f.command, err)
	}
	return err.Error()
}

// output prints what the last command wrote, and the way into the error.
func (p *printer) output(f finding, short bool) {
	if f.result == nil {
		return
	}
	title := "output"
	if f.result.Reason != procgroup.Exited {
		title = "partial output"
	}
	lines := excerpt(f.result.Combined.String(), short)
	if len(lines) > 0 {
		p.printf("   %s of %s", title, f.command)
		if dropped := f.result.Combined.Dropped; dropped > 0 {
			p.printf(" (its first %d bytes were not kept)", dropped)
		}
		p.printf(":\n")
		p.lines(lines)
	}
	if f.trace == "" {
		return
	}
	lines = excerpt(f.trace, false)
	p.printf("   the way into the error, %d lines of it:\n", len(lines))
	if most := 6; short && len(lines) > most {
		p.lines([]string{"..."})
		lines = lines[len(lines)-most:]
	}
	p.lines(lines)
}

func (p *printer) lines(lines []string) {
	for _, line := range lines {
		p.printf("      | %s\n", line)
	}
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return fmt.Sprintf("%v s", d.Seconds())
}

func count(n float64) string {
	if n >= 1e6 {
		return fmt.Sprintf("%.1f million", n/1e6)
	}
	return fmt.Sprintf("%.0f", n)
}
