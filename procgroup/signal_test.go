//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// eachWay is eachContainment, and the group.
func eachWay(t *testing.T, f func(t *testing.T, opt procgroup.Option)) {
	eachContainment(t, f)
	t.Run("group", func(t *testing.T) { f(t, procgroup.Group) })
}

type notASignal struct{}

func (notASignal) String() string { return "not a signal" }
func (notASignal) Signal()        {}

// SPEC 2.9: a value that is no signal, or none that a program can handle, is an error, and nothing is started.
func TestBadSignal(t *testing.T) {
	const numbers = "a syscall.Signal from 1 to 64"
	for _, option := range []struct {
		key, accepted string
		with          func(os.Signal) procgroup.Option
		bad           map[string]os.Signal
	}{
		{"Stop.Signal", numbers, func(sig os.Signal) procgroup.Option { return procgroup.Stop{Signal: sig} }, nil},
		{"Stop.Closing", numbers + " that a program can handle", func(sig os.Signal) procgroup.Option { return procgroup.Stop{Closing: sig} }, map[string]os.Signal{"killed": os.Kill, "stopped (signal)": syscall.SIGSTOP}},
	} {
		values := map[string]os.Signal{"signal 0": syscall.Signal(0), "signal -1": syscall.Signal(-1), "signal 65": syscall.Signal(65), "procgroup_test.notASignal": notASignal{}}
		maps.Copy(values, option.bad)
		for value, sig := range values {
			t.Run(option.key+" "+value, func(t *testing.T) {
				want := timeout.ConfigError{Key: option.key, Value: value, Accepted: option.accepted}
				cmd, attached := exec.Command("true"), exec.CommandContext(t.Context(), "true")
				_, started := procgroup.Start(t.Context(), cmd, option.with(sig))
				procgroup.Attach(attached, option.with(sig))
				for _, err := range []error{started, attached.Run()} {
					var bad *timeout.ConfigError
					if !errors.As(err, &bad) || cmd.Process != nil {
						t.Fatalf("%v, %v", err, cmd.Process)
					}
					if diff := cmp.Diff(want, *bad); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// A signal goes to each process of the tree once, a daemon included.
func TestSignal(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		var ready, got atomic.Int32
		var p *procgroup.Process
		p, err := procgroup.Start(context.Background(), command("count", "leader"), opt,
			procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
				if strings.HasSuffix(line, "ready") {
					ready.Add(1)
				} else {
					got.Add(1)
				}
			})})
		if err != nil {
			t.Fatal(err)
		}
		until := func(n *atomic.Int32, want int32) {
			t.Helper()
			harness.Eventually(t, "the signals", func() bool { return n.Load() >= want })
		}
		until(&ready, 2)
		const times = 5
		for i := range int32(times) {
			if err := p.Signal(syscall.SIGUSR1); err != nil {
				t.Error(err)
			}
			until(&got, 2*(i+1))
		}
		for _, bad := range []os.Signal{nil, syscall.Signal(65), notASignal{}} {
			if err := p.Signal(bad); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%v: %v", bad, err)
			}
		}
		if err := p.Signal(syscall.Signal(0)); err != nil {
			t.Error(err)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		r, err := p.Wait()
		r.PipeHeld = false // on a busy machine the signal ends the daemon a moment after the leader
		check(t, r, err, want{code: 128 + 15})
		if s := r.Stdout.String(); strings.Count(s, "leader\n") != times || strings.Count(s, "daemon\n") != times {
			t.Errorf("%q", s)
		}
	})
}
