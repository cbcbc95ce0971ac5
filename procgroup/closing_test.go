//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// closable says which signals it gets. It ends by itself 0.1 s after an interrupt if its argument is
// "ends".
const closable = `trap 'echo int; test $0 = goes || { sleep 0.1; exit 0; }' INT
trap 'echo term; exit 4' TERM
echo ready; while :; do sleep 0.02; done`

// whenClosing starts a shell script in an execution that is made closing once the script is ready.
func whenClosing(t *testing.T, script, arg string, opts ...procgroup.Option) (r *procgroup.Result, err error) {
	t.Helper()
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		ready := make(chan struct{}, 1)
		var p *procgroup.Process
		p, err = procgroup.Start(ctx, exec.Command("sh", "-c", script, arg), append(opts, procgroup.WithOptions(timeout.WithName("tool")),
			procgroup.WithOutput(procgroup.Lines(func(line string, stderr bool) {
				if line == "ready" {
					ready <- struct{}{}
				}
			})))...)
		if err != nil {
			return err
		}
		<-ready
		timeout.FromContext(ctx).BeginClosing()
		r, err = p.Wait()
		return err
	}, timeout.Config{})
	return r, err
}

// SPEC 6.27: a command that ends by itself after the closing signal has ended by itself.
func TestClosingSignalEndsCommand(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		r, err := whenClosing(t, closable, "ends", opt, procgroup.WithClosingSignal(os.Interrupt))
		check(t, r, err, want{})
		if got := r.Stdout.String(); got != "ready\nint\n" {
			t.Errorf("it got %q", got)
		}
	})
	t.Run("and dies of it", func(t *testing.T) {
		t.Parallel()
		r, err := whenClosing(t, "echo ready; exec sleep 120", "", procgroup.WithClosingSignal(syscall.SIGUSR1))
		check(t, r, err, want{code: 128 + int(syscall.SIGUSR1)})
	})
}

// SPEC 3.20, 6.27: the reserve is the command's own; then comes the limit, with the stop signal.
func TestClosingSignalThenLimit(t *testing.T) {
	t.Parallel()
	const limit = 24 * time.Second // the trap must be set by half of it
	for _, tc := range []struct {
		name, arg, out string
		reserve        time.Duration
		want           want
	}{
		{"limit", "goes", "ready\nint\nterm\n", limit / 2, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 24000ms."}},
		{"its own end", "ends", "ready\nint\n", limit / 2, want{}},
		{"no reserve", "ends", "ready\nterm\n", 0, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 24000ms."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := within(t, limit+longLimit, exec.Command("sh", "-c", closable, tc.arg),
				procgroup.WithLimits(timeout.Config{Total: limit, Reserve: tc.reserve}), procgroup.WithKillGrace(longLimit),
				procgroup.WithClosingSignal(os.Interrupt), procgroup.WithOptions(timeout.WithName("tool")))
			check(t, r, err, tc.want)
			if got := r.Stdout.String(); got != tc.out {
				t.Errorf("it got %q, want %q", got, tc.out)
			}
		})
	}
}

// SPEC 6.27: a command that ignores both is killed after the grace.
func TestClosingSignalIgnored(t *testing.T) {
	t.Parallel()
	r, err := within(t, 20*time.Second+shortGrace, exec.Command("sh", "-c", "trap '' INT TERM; while :; do sleep 1; done"),
		procgroup.WithLimits(timeout.Config{Total: 20 * time.Second, Reserve: 5 * time.Second}), procgroup.WithKillGrace(shortGrace),
		procgroup.WithClosingSignal(os.Interrupt), procgroup.WithOptions(timeout.WithName("tool")))
	check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 20000ms.", escalated: true})
}

// SPEC 6.27: after the end of the command what lives on of it is not signalled, and after a stop
// there is only the stop signal.
func TestClosingSignalNotAfterEnd(t *testing.T) {
	t.Parallel()
	t.Run("end", func(t *testing.T) {
		t.Parallel()
		got, stop := filepath.Join(t.TempDir(), "got"), filepath.Join(t.TempDir(), "stop")
		const script = `(trap 'echo int >>"$0"' INT; trap : TERM; while test ! -e "$1"; do sleep 0.02; done; echo over >>"$0") >/dev/null 2>&1 &
sleep 0.2`
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			_, err := procgroup.Run(ctx, exec.Command("sh", "-c", script, got, stop), procgroup.WithOrphans(), procgroup.WithClosingSignal(syscall.SIGINT))
			timeout.FromContext(ctx).BeginClosing()
			return err
		}, timeout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var text []byte
		until(t, "the orphan to end", func() bool { text, _ = os.ReadFile(got); return len(text) > 4 })
		if string(text) != "over\n" {
			t.Errorf("the orphan got %q", text)
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		const script = `trap 'echo int' INT; trap 'echo term; sleep 1; exit 4' TERM; echo ready; while :; do sleep 0.02; done`
		stopped := make(chan struct{})
		var p *procgroup.Process
		err := timeout.Run(context.Background(), func(ctx context.Context) (err error) {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			p, err = procgroup.Start(inner, exec.Command("sh", "-c", script), procgroup.WithAbortGrace(longLimit), procgroup.WithClosingSignal(os.Interrupt),
				procgroup.WithOutput(procgroup.Lines(func(line string, stderr bool) {
					switch line {
					case "ready":
						cancel()
					case "term":
						close(stopped)
					}
				})))
			if err != nil {
				return err
			}
			<-stopped
			timeout.FromContext(ctx).BeginClosing()
			_, err = p.Wait()
			return err
		}, timeout.Config{})
		r, _ := p.Wait()
		if got := r.Stdout.String(); got != "ready\nterm\n" || r.Reason != procgroup.Aborted {
			t.Errorf("%q, %v, %v", got, r.Reason, err)
		}
	})
}

// SPEC 2.9: a signal that no program can handle is an error, and nothing is started.
func TestBadClosingSignal(t *testing.T) {
	for value, sig := range map[string]os.Signal{
		"<nil>": nil, "signal 0": syscall.Signal(0), "killed": os.Kill, "stopped (signal)": syscall.SIGSTOP, "procgroup_test.notASignal": notASignal{},
	} {
		t.Run(value, func(t *testing.T) {
			cmd := exec.Command("true")
			_, err := procgroup.Start(context.Background(), cmd, procgroup.WithClosingSignal(sig), procgroup.WithStopSignal(os.Interrupt))
			var bad *timeout.ConfigError
			if !errors.As(err, &bad) || cmd.Process != nil {
				t.Fatalf("%v, %v", err, cmd.Process)
			}
			if diff := cmp.Diff(timeout.ConfigError{Key: "WithClosingSignal", Value: value, Accepted: "a syscall.Signal from 1 to 64 that a program can handle"}, *bad); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.WithClosingSignal(nil), procgroup.WithClosingSignal(os.Interrupt)); err != nil {
		t.Errorf("the last one is good: %v", err)
	}
}

// SPEC 3.21: a command that needs more than is left is not started.
func TestNeedOfCommand(t *testing.T) {
	for _, tc := range []struct {
		name    string
		limits  timeout.Config
		need    time.Duration
		started bool
	}{
		{"its own total is less", timeout.Config{Total: time.Hour}, 2 * time.Hour, false},
		{"the total around is less", timeout.Config{}, 30 * time.Hour, false},
		{"enough", timeout.Config{Total: 2 * time.Hour}, time.Hour, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				cmd := exec.Command("true")
				p, err := procgroup.Start(ctx, cmd, procgroup.WithLimits(tc.limits), procgroup.WithOptions(timeout.WithName("tool"), timeout.Need(tc.need)))
				if tc.started {
					if err != nil {
						t.Fatal(err)
					}
					_, err = p.Wait()
					return err
				}
				var e *timeout.Error
				if !errors.As(err, &e) || cmd.Process != nil {
					t.Fatalf("%v, %v", err, cmd.Process)
				}
				if e.Kind != timeout.KindTotal || e.Tool != "tool" || e.Needed != tc.need || e.Limit <= 0 || e.Limit >= tc.need || timeout.ExitCode(err) != 124 {
					t.Errorf("%+v", e)
				}
				return nil
			}, timeout.Config{Total: 24 * time.Hour})
		})
	}
}
