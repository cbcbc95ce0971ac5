//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"math"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	totalMessage = "tool process timed out after 20000ms."
	totalError   = "Tool exceeded wall-clock limit of 20s."
)

// SPEC 6.1, 5.2, 2.13: a command that a limit or the caller stops is asked to end, and killed after the grace. What it makes of
// the request does not hide the timeout, and is kept.
func TestStop(t *testing.T) {
	handles := func(code int, s ...Step) Script {
		return Script{traps(syscall.SIGTERM, append(s, prints, exits(code))...), lasts}
	}
	stopped := outcome{Message: totalMessage, Error: totalError}
	escalated, said := stopped, stopped
	escalated.Escalated = true
	said.Stdout, said.Combined = "a", "a"
	ends := func(code int, o outcome, errs ...error) func(*Run) {
		return func(r *Run) {
			is(o, errs...)(r)
			var own EndError
			if r.Code() != code || errors.As(r.Err, &own) != (code != 0) || own.Code != code {
				r.Errorf("the command ended with %d, and the error has %#v", r.Code(), own)
			}
		}
	}
	for _, s := range []Scenario{
		{Name: "needs more", Script: handles(0, sleeps(5*time.Second+1)), Options: []procgroup.Option{procgroup.Stop{}},
			Want: []string{"20s 1: SIGTERM, SIGCONT", "25s 1: SIGKILL, dies of SIGKILL", "25s wait: total timeout 124"}, Check: ends(137, escalated, timeout.ErrTotal)},
		{Name: "an endless grace", Script: handles(0, sleeps(time.Hour)), Options: []procgroup.Option{procgroup.Stop{Grace: math.MaxInt64}},
			Want: []string{"20s 1: SIGTERM, SIGCONT", "1h0m20s 1: exit 0", "1h0m20s wait: total timeout 124"}},
		// A second of the grace is for what follows the kill.
		{Name: "a grace of the limits", Script: Script{ignoresTerm, lasts}, Options: []procgroup.Option{procgroup.Limits{Total: 20 * time.Second, Grace: 1200 * time.Millisecond}},
			Want: []string{"20s 1: SIGTERM, SIGCONT", "20.2s 1: SIGKILL, dies of SIGKILL", "20.2s wait: total timeout 124"}, Check: ends(137, escalated)},
		// SPEC 2.2
		{Name: "none of the limits", Script: handles(0), Options: []procgroup.Option{procgroup.Limits{Total: 20 * time.Second, Grace: -1}},
			Want: []string{"20s 1: SIGKILL, dies of SIGKILL", "20s wait: total timeout 124"}, Check: ends(137, stopped)},
		{Name: "another signal", Script: Script{traps(syscall.SIGUSR1, exits(3)), lasts}, Options: []procgroup.Option{procgroup.Stop{Signal: syscall.SIGUSR1}},
			Want: []string{"20s 1: SIGUSR1, SIGCONT, exit 3", "20s wait: total timeout 124"}, Check: ends(3, stopped)},
		{Name: "SIGKILL", Script: handles(0), Options: []procgroup.Option{procgroup.Stop{Signal: os.Kill}}, Want: []string{"20s 1: SIGKILL, dies of SIGKILL", "20s wait: total timeout 124"},
			Check: ends(137, stopped)},
		{Name: "aborted, with a negative grace", Script: handles(3), Options: []procgroup.Option{procgroup.Stop{AbortDelay: math.MinInt64}}, Events: aborts(time.Second),
			Want: []string{"1s 1: SIGKILL, dies of SIGKILL", "1s wait: aborted 130"}},
		{
			Name: "signalled", Script: Script{{Do: Daemon, Script: Script{traps(syscall.SIGUSR1), lasts}}, traps(syscall.SIGUSR1), lasts},
			Events: []Event{signals(time.Second, syscall.SIGUSR1), signals(2*time.Second, syscall.SIGUSR1), signals(3*time.Second, syscall.SIGTERM)},

			Want: []string{
				"1s 1: SIGUSR1",
				"1s 1.1: SIGUSR1",
				"2s 1: SIGUSR1",
				"2s 1.1: SIGUSR1",
				"3s 1: SIGTERM, dies of SIGTERM",
				"3s 1.1: SIGTERM, dies of SIGTERM",
				"3s wait: exited 143",
			},
			Check: func(r *Run) {
				for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill, syscall.Signal(0)} {
					if err := r.Process.Signal(sig); err != os.ErrProcessDone {
						r.Errorf("%v after the end: %v", sig, err)
					}
				}
			},
		},
	} {
		s.Options = append([]procgroup.Option{limits(20*time.Second, 0)}, s.Options...)
		Test(t, s)
	}
}

func signals(after time.Duration, sig os.Signal) Event {
	return Event{At: after, Do: func(r *Run) {
		if err := r.Process.Signal(sig); err != nil {
			r.Error(err)
		}
	}}
}

// SPEC 6.27, 3.20: a command whose execution is closing gets a signal, once; the reserve is its own. Then comes the limit, with
// its signal.
func TestClosingSignal(t *testing.T) {
	interrupt := procgroup.Stop{Closing: os.Interrupt}
	reserve := procgroup.Limits{Total: 20 * time.Second, Reserve: 5 * time.Second}
	var closing func() bool // of the execution
	remember := procgroup.WithOptions(timeout.WithHooks(timeout.Hooks{
		Started: func(ctx context.Context, _ timeout.Snapshot) { closing = timeout.FromContext(ctx).BeginClosing },
	}))
	for _, s := range []Scenario{
		{Name: "told to close, twice", Script: Script{traps(syscall.SIGINT), lasts}, Options: []procgroup.Option{reserve},
			Events: []Event{{At: time.Second, Do: func(*Run) { closing(); closing() }}}, Want: []string{"1s 1: SIGINT", "20s 1: SIGTERM, dies of SIGTERM", "20s wait: total timeout 124"}},
		{Name: "dies of it", Script: Script{lasts}, Options: []procgroup.Option{procgroup.Stop{Closing: syscall.SIGUSR1}}, Events: []Event{{At: time.Second, Do: func(*Run) { closing() }}},
			Want: []string{"1s 1: SIGUSR1, dies of SIGUSR1", "1s wait: exited 138"}},
		{
			Name: "not after the end", Script: Script{{Do: Daemon, Script: Script{{Do: Close, FD: 1}, {Do: Close, FD: 2}, lasts}}, exits(0)}, Options: []procgroup.Option{procgroup.Stop{Closing: os.Interrupt, Orphans: true}},
			Want: []string{"0s 1: exit 0", "0s wait: exited 0"},
			Check: func(r *Run) {
				closing()
				synctest.Wait()
				if got := r.Trace.Lines(); len(got) != 2 || len(r.Alive()) != 1 {
					r.Errorf("%q", got)
				}
			},
		},
		{Name: "not after a stop", Script: Script{traps(syscall.SIGTERM, sleeps(2*time.Second), exits(4)), lasts}, Options: []procgroup.Option{procgroup.Stop{Closing: os.Interrupt, AbortDelay: time.Minute}},
			Events: append(aborts(time.Second), Event{At: 2 * time.Second, Do: func(*Run) { closing() }}), Want: []string{"1s 1: SIGTERM, SIGCONT", "3s 1: exit 4", "3s wait: aborted 130"}},
	} {
		s.Options = append([]procgroup.Option{interrupt, remember}, s.Options...)
		Test(t, s)
	}
}
