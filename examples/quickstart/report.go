package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// printer writes the report. It remembers the first error and writes nothing after it.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) row(label, format string, args ...any) {
	p.printf("   %-16s %s\n", label, fmt.Sprintf(format, args...))
}

func (p *printer) intro(root string) {
	p.printf(`One tool, run four times under the limits of package timeout.

The tool hashes every file below
   %s
round after round, %d at once. It sends a heartbeat after each file, and after each MiB
of a big one, and knows nothing of the limits that it runs under:
   idle limit   %4v s   the longest time without a heartbeat
   total limit  %4v s   the longest time in all, whatever the heartbeats
(Both are short, so that this is over in seconds. They are usually minutes.)

The exit codes: 0 success, 124 stopped by a limit, 130 aborted.
`, root, width, idleLimit.Seconds(), totalLimit.Seconds())
}

func (p *printer) title(number int, c runCase) {
	p.printf("\n%d. %s\n   %s\n", number, c.title, c.about)
}

func (p *printer) outcome(o outcome) {
	p.printf("\n")
	kept := "partial result"
	if o.err == nil {
		p.row("error", "none")
		kept = "result"
	} else {
		p.row("error", "%v", o.err)
	}
	p.row("exit code", "%d", timeout.ExitCode(o.err))
	p.row("elapsed", "%s", against(o.elapsed, o.limits.Total, "total", errors.Is(o.err, timeout.ErrTotal)))
	p.row("longest silence", "%s", against(o.longestGap, o.limits.Idle, "idle", errors.Is(o.err, timeout.ErrIdle)))
	p.row("heartbeats", "%d", o.beats)
	if o.abandoned {
		p.row("abandoned", "it did not return when its context was cancelled, so its partial result is lost")
	}
	p.row(kept, "%d files hashed, %.1f MiB, %s", o.result.files, float64(o.result.bytes)/(1<<20), rounds(o.result))
	if o.result.files > 0 {
		p.row("last file", "%x...  %s", o.result.sum[:4], o.result.last)
	}
	if o.result.skipped > 0 {
		p.row("skipped", "%d times a file or directory that could not be read", o.result.skipped)
	}
	for i, line := range shorten(o.stack) {
		label := ""
		if i == 0 {
			label = "it hung in"
		}
		p.row(label, "%s", line)
	}
}

func (p *printer) verdict(problem error) {
	if problem != nil {
		p.row("as expected", "NO: %v", problem)
		return
	}
	p.row("as expected", "yes")
}

// against formats a time beside its limit.
func against(d, limit time.Duration, name string, reached bool) string {
	s := fmt.Sprintf("%.3f s of %v s (%s limit)", d.Seconds(), limit.Seconds(), name)
	if reached {
		s += "  <- that stopped it"
	}
	return s
}

func rounds(h hashed) string {
	switch h.rounds {
	case 0:
		return "in the first round"
	case 1:
		return "1 whole round and part of another"
	}
	return fmt.Sprintf("%d whole rounds and part of another", h.rounds)
}

// shorten returns the lines of a stack trace that matter: the state of the goroutine, the call that it is in,
// and the functions of this program that led there, innermost first. They are those of a worker's goroutine if
// there is one, because the tool's own goroutine only waits for its workers. A trace begins with "goroutine 7
// [IO wait]:" and has two lines for each call, "os.(*File).Read(0x2a, ...)" and "\t/src/os/file.go:144 +0x4f".
func shorten(stack []byte) []string {
	traces := strings.Split(string(stack), "\n\n") // the first is the tool's
	trace := traces[0]
	for _, t := range traces {
		if strings.Contains(t, "\ncreated by golang.org/x/sync/errgroup.") {
			trace = t
			break
		}
	}
	lines := strings.Split(trace, "\n")
	var out []string
	for i := 1; i+1 < len(lines); i += 2 {
		name := lines[i]
		if strings.HasPrefix(name, "created by ") {
			break
		}
		if args := strings.LastIndex(name, "("); args > 0 {
			name = name[:args]
		}
		deep := strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "syscall.")
		ours := strings.HasPrefix(name, "main.")
		if deep || (len(out) > 0 && !ours) {
			continue
		}
		if len(out) == 0 {
			out = append(out, strings.TrimSuffix(lines[0], ":"))
		}
		where, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		out = append(out, fmt.Sprintf("  %-28s %s", name, filepath.Base(where)))
	}
	return out
}
