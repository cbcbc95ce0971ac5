//go:build unix

package procgroup_test

import (
	"errors"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// What commands in simulated time do often.
var (
	prints      = Step{Do: Write, FD: 1, N: 1}
	complains   = Step{Do: Write, FD: 2, N: 1}
	lasts       = Step{Do: Sleep, D: time.Hour}
	ignoresTerm = Step{Do: Ignore, Signal: syscall.SIGTERM}
)

func sleeps(d time.Duration) Step              { return Step{Do: Sleep, D: d} }
func writes(n int) Step                        { return Step{Do: Write, FD: 1, N: n} }
func exits(code int) Step                      { return Step{Do: Exit, N: code} }
func traps(sig syscall.Signal, s ...Step) Step { return Step{Do: Trap, Signal: sig, Script: s} }

func limits(total, idle time.Duration) procgroup.Option {
	return procgroup.Limits{Total: total, Idle: idle}
}

// An outcome is what the result and the error of a command say, beside the reason and the code, which end the trace.
type outcome struct {
	Message, Error           string
	Escalated, Held          bool
	Stdout, Stderr, Combined string
	Unwritten, Skipped       int64
}

// is compares the outcome of a command, whose error must also be those.
func is(want outcome, errs ...error) func(*Run) {
	return func(r *Run) {
		r.Helper()
		res := r.Result
		got := outcome{res.Message, "", res.Escalated, res.PipeHeld, res.Stdout.String(), res.Stderr.String(), res.Combined.String(), res.Unwritten, res.Skipped}
		if r.Err != nil {
			got.Error = r.Err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Error(diff)
		}
		for _, e := range errs {
			if !errors.Is(r.Err, e) {
				r.Errorf("%#v is no %v", r.Err, e)
			}
		}
	}
}

// aborts is an abort after d.
func aborts(d time.Duration) []Event {
	return []Event{{At: d, Do: func(r *Run) { r.Cancel(nil) }}}
}
