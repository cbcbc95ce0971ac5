//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// eachWay is eachContainment, and the group.
func eachWay(t *testing.T, f func(t *testing.T, opt procgroup.Option)) {
	eachContainment(t, f)
	t.Run("group", func(t *testing.T) { f(t, procgroup.WithContainment(procgroup.Group)) })
}

// SPEC 6.1, with another signal: it is the first, and the only one before the kill.
func TestStopSignal(t *testing.T) {
	t.Parallel()
	const script = "trap 'echo usr1; exit 3' USR1; trap 'echo term; exit 4' TERM; echo ready; while :; do sleep 0.02; done"
	eachWay(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		r, err := within(t, 20*time.Second, exec.Command("sh", "-c", script),
			total(20*time.Second, opt, procgroup.WithStopSignal(syscall.SIGUSR1), procgroup.WithKillGrace(longLimit))...)
		check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 20000ms."})
		if r.State.ExitCode() != 3 || r.Stdout.String() != "ready\nusr1\n" {
			t.Errorf("%v, %q", r.State, r.Stdout)
		}
	})
	t.Run("kill", func(t *testing.T) {
		r, err := within(t, shortLimit, exec.Command("sh", "-c", script),
			total(shortLimit, procgroup.WithStopSignal(os.Kill), procgroup.WithKillGrace(longLimit))...)
		check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 3000ms."})
		if r.State.String() != "signal: killed" {
			t.Errorf("%v", r.State)
		}
	})
	t.Run("attach", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		procgroup.Attach(cmd, procgroup.WithStopSignal(syscall.SIGUSR1))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = out.Read(make([]byte, 100))
		cancel()
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%v", cmd.ProcessState)
		}
	})
}

type notASignal struct{}

func (notASignal) String() string { return "not a signal" }
func (notASignal) Signal()        {}

// SPEC 2.9: a value that is no signal is an error, and nothing is started.
func TestBadStopSignal(t *testing.T) {
	for _, tt := range []struct {
		sig   os.Signal
		value string
	}{
		{nil, "<nil>"},
		{syscall.Signal(0), "signal 0"},
		{syscall.Signal(-1), "signal -1"},
		{syscall.Signal(65), "signal 65"},
		{notASignal{}, "procgroup_test.notASignal"},
	} {
		t.Run(tt.value, func(t *testing.T) {
			cmd := exec.Command("true")
			_, err := procgroup.Start(context.Background(), cmd, procgroup.WithStopSignal(tt.sig))
			var bad *timeout.ConfigError
			if !errors.As(err, &bad) || cmd.Process != nil {
				t.Fatalf("%v, %v", err, cmd.Process)
			}
			if diff := cmp.Diff(timeout.ConfigError{Key: "WithStopSignal", Value: tt.value, Accepted: "a syscall.Signal from 1 to 64"}, *bad); diff != "" {
				t.Error(diff)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			attached := exec.CommandContext(ctx, "true")
			procgroup.Attach(attached, procgroup.WithStopSignal(tt.sig))
			if err := attached.Run(); !errors.As(err, &bad) {
				t.Errorf("attached: %v", err)
			}
		})
	}
}

// A signal goes to each process of the tree once. That it ends the command is no stop.
func TestSignal(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		var ready, got atomic.Int32
		var p *procgroup.Process
		p, err := procgroup.Start(context.Background(), command("count", "leader"), opt,
			procgroup.WithOutput(procgroup.Lines(func(line string, _ bool) {
				if strings.HasSuffix(line, "ready") {
					ready.Add(1)
				} else {
					got.Add(1)
				}
			})))
		if err != nil {
			t.Fatal(err)
		}
		until := func(n *atomic.Int32, want int32) {
			t.Helper()
			until(t, "the signals", func() bool { return n.Load() >= want })
		}
		until(&ready, 2)
		const times = 5
		for i := range int32(times) {
			if err := p.Signal(syscall.SIGUSR1); err != nil {
				t.Error(err)
			}
			until(&got, 2*(i+1))
			time.Sleep(5 * time.Millisecond) // for one too many
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
		for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill, syscall.Signal(0)} {
			if err := p.Signal(sig); err != os.ErrProcessDone {
				t.Errorf("%v after the end: %v", sig, err)
			}
		}
	})
}

// While a command ends, by itself or not, the error of a signal says that, and nothing
// else.
func TestSignalAtTheEnd(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, opt procgroup.Option) {
		for range 10 {
			p, err := procgroup.Start(context.Background(), exec.Command("true"), opt)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				for {
					if err := p.Signal(syscall.SIGCONT); err != nil {
						ended <- err
						return
					}
				}
			}()
			_, werr := p.Wait()
			if err := <-ended; err != os.ErrProcessDone || werr != nil {
				t.Fatalf("%v, %v", err, werr)
			}
		}
	})
}

// SPEC 6.11: signals that wait for their turn do not hold up the end of the call.
func TestSignalsDoNotDelayTheEnd(t *testing.T) {
	for _, c := range []procgroup.Containment{procgroup.Descendants, procgroup.Helper} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			best := time.Hour
			for range 5 { // one of them is undisturbed
				if best = min(best, endDespiteSignals(t, c)); best < shortGrace+4*time.Second { // three seconds more than what is promised
					return
				}
			}
			t.Errorf("took %v", best)
		})
	}
}

// endDespiteSignals is how long a command takes to end while thousands of signals to it wait for their turn.
func endDespiteSignals(t *testing.T, c procgroup.Containment) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan struct{})
	var once sync.Once
	p, err := procgroup.Start(ctx, command("deaf"), procgroup.WithContainment(c), procgroup.WithAbortGrace(shortGrace), procgroup.WithOptions(timeout.WithName("tool")),
		procgroup.WithOutput(func(procgroup.Chunk) { once.Do(func() { close(ready) }) }))
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	var signals sync.WaitGroup
	// On one processor the goroutine that ends the command gets its turn after thousands of others.
	n := 3000
	if runtime.GOMAXPROCS(0) == 1 {
		n = 500
	}
	var refused atomic.Int32
	for range n {
		signals.Go(func() {
			if p.Signal(syscall.SIGWINCH) != nil {
				refused.Add(1)
			}
		})
	}
	time.Sleep(time.Second / 2) // for them to get into the queue
	begun := time.Now()
	cancel()
	r, err := p.Wait()
	took := time.Since(begun)
	signals.Wait()
	t.Logf("%d signals of %d came too late", refused.Load(), n)
	check(t, r, err, want{130, procgroup.Aborted, aborted, true, false})
	return took
}
