//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A recorder writes down which hooks were called, and with what.
type recorder struct {
	mu   sync.Mutex
	list []string
	last timeout.Snapshot
}

func (r *recorder) hooks() timeout.Hooks {
	note := func(name string) func(context.Context, timeout.Snapshot) {
		return func(_ context.Context, s timeout.Snapshot) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.list, r.last = append(r.list, name), s
		}
	}
	return timeout.Hooks{
		Started: note("started"), NearIdle: note("near idle"), Finished: note("finished"),
		Abandoned: note("abandoned"), Returned: note("returned"),
	}
}

// Hooks see the command from before its start to its result, and the error of Wait.
func TestHooks(t *testing.T) {
	t.Parallel()
	idle := procgroup.WithLimits(timeout.Config{Idle: time.Second})
	for _, tt := range []struct {
		name  string
		cmd   *exec.Cmd
		opts  []procgroup.Option
		want  []string
		code  int
		stops error
	}{
		{"success", exec.Command("true"), nil, []string{"started", "finished"}, 0, nil},
		{"failure", exec.Command("sh", "-c", "exit 3"), nil, []string{"started", "finished"}, 3, nil},
		{"not found", exec.Command("/no/such/command"), nil, []string{"started", "finished"}, 127, nil},
		{"idle limit", exec.Command("sleep", "60"), []procgroup.Option{idle}, []string{"started", "near idle", "finished"}, 124, timeout.ErrIdle},
	} {
		for _, inside := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				cmd := *tt.cmd
				var first, second recorder
				opts := append(tt.opts, procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithOptions(timeout.WithHooks(first.hooks())), procgroup.WithOptions(timeout.WithHooks(second.hooks())))
				var err error
				run := func(ctx context.Context) error {
					_, err = procgroup.Run(ctx, &cmd, opts...)
					return nil
				}
				if inside {
					_ = timeout.Run(context.Background(), run, timeout.Config{Total: longLimit})
				} else {
					_ = run(context.Background())
				}
				for _, r := range []*recorder{&first, &second} {
					s := r.last
					if s.Stalls > 0 { // SPEC 3.16: on a busy machine the idle check has begun afresh
						r.list = slices.Compact(r.list)
					}
					if diff := cmp.Diff(tt.want, r.list); diff != "" {
						t.Error(diff)
					}
					if s.Err != err || timeout.ExitCode(s.Err) != tt.code || (tt.stops != nil && !errors.Is(s.Err, tt.stops)) {
						t.Errorf("error %v, of Wait %v", s.Err, err)
					}
					if s.Tool != "tool" || s.Limits.Grace != procgroup.DefaultKillGrace+time.Second {
						t.Errorf("%+v", s)
					}
				}
				var stop *timeout.Error
				if errors.As(err, &stop) && stop.Limits.Grace != procgroup.DefaultKillGrace+time.Second {
					t.Errorf("limits %+v", stop.Limits)
				}
			})
		}
	}
}

// A hook that panics or ends its goroutine ends neither the process nor the call.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	fail := map[string]func(context.Context, timeout.Snapshot){
		"panic":  func(context.Context, timeout.Snapshot) { panic("hook") },
		"goexit": func(context.Context, timeout.Snapshot) { runtime.Goexit() },
	}
	for name, f := range fail {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			r, err := procgroup.Run(context.Background(), exec.Command("true"), logger, procgroup.WithOptions(timeout.WithHooks(timeout.Hooks{Finished: f})))
			if err != nil || r.ExitCode != 0 || !strings.Contains(log.String(), "hook") {
				t.Errorf("%v, %s", err, &log)
			}
			_, err = procgroup.Run(context.Background(), exec.Command("true"), logger, procgroup.WithOptions(timeout.WithHooks(timeout.Hooks{Started: f})))
			if (name == "goexit") != errors.Is(err, timeout.ErrGoexit) {
				t.Error(err)
			}
		})
	}
}

// The logger is told what the execution says, and what was left behind.
func TestLogger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		opts         []procgroup.Option
		want, not    string
	}{
		{"success", "echo a", nil, "", "level="},
		{"failure", "exit 3", nil, "", "level="},
		{"held", "sleep 5 & exit 0", nil, `level=WARN msg="command left something behind" tool=tool`, "timed out"},
		{"held by orphans", "sleep 1 & exit 0", []procgroup.Option{procgroup.WithOrphans(true)}, "", "level="},
		{"limit", "sleep 60", []procgroup.Option{procgroup.WithLimits(timeout.Config{Total: shortLimit})}, `level=WARN msg="tool timed out" tool=tool`, "left"},
		{"corrected limits", "echo a", []procgroup.Option{procgroup.WithLimits(timeout.Config{Total: -1})}, "level=WARN", "left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			opts := append(tt.opts, procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			_, _ = procgroup.Run(context.Background(), exec.Command("sh", "-c", tt.script), opts...)
			if !strings.Contains(log.String(), tt.want) || strings.Contains(log.String(), tt.not) {
				t.Errorf("log %s", &log)
			}
		})
	}
}

// A directory that is not there is named, as os/exec names it.
func TestNoSuchDirectory(t *testing.T) {
	missing := func() *exec.Cmd {
		cmd := exec.CommandContext(context.Background(), "true")
		cmd.Dir = "/no/such/directory"
		return cmd
	}
	want := missing().Run()
	_, run := procgroup.Run(context.Background(), missing())
	attached := missing()
	procgroup.Attach(attached)
	for name, err := range map[string]error{"Run": run, "Attach": attached.Run()} {
		if err == nil || err.Error() != want.Error() || !errors.Is(err, fs.ErrNotExist) || timeout.ExitCode(err) != timeout.ExitCode(want) {
			t.Errorf("%s: %v, with code %d; of os/exec %v, with code %d", name, err, timeout.ExitCode(err), want, timeout.ExitCode(want))
		}
	}
	own := missing()
	own.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	want = own.Run() // does not name it
	own = missing()
	own.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := procgroup.Run(context.Background(), own); err == nil || err.Error() != want.Error() {
		t.Errorf("with attributes %v, of os/exec %v", err, want)
	}
	nowhere := missing()
	nowhere.Path, nowhere.Err = "no-such-command", exec.ErrNotFound
	if _, err := procgroup.Run(context.Background(), nowhere); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("the command is not found in the first place, and the error is %v", err)
	}
}
