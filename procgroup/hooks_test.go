//go:build linux

package procgroup_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hooked is what the mode of that name says of one hook.
type hooked struct {
	Hook, Tool, State, Err string
	ID, Of                 uint64 // of the snapshot, and of the execution in the context
	Limits                 timeout.Config
	Stalls                 int
}

var hookedLimits = timeout.Config{Idle: 8 * time.Second, Total: longLimit, Reserve: longLimit - 100*time.Millisecond}

// runModeHooked runs a command that says nothing, with every hook that there is, and says which
// are called.
func runModeHooked([]string) int {
	var mu sync.Mutex
	say := json.NewEncoder(os.Stdout)
	var hooks timeout.Hooks
	all := reflect.ValueOf(&hooks).Elem()
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		all.Field(i).Set(reflect.MakeFunc(all.Field(i).Type(), func(args []reflect.Value) []reflect.Value {
			ctx, s := args[0].Interface().(context.Context), args[1].Interface().(timeout.Snapshot)
			mu.Lock()
			defer mu.Unlock()
			_ = say.Encode(hooked{name, s.Tool, s.State.String(), fmt.Sprint(s.Err), s.ID, timeout.FromContext(ctx).ID(), s.Limits, s.Stalls})
			return args[:reflect.TypeOf(all.Field(i).Interface()).NumOut()] // the context, where one is wanted
		}))
	}
	_, err := procgroup.Run(context.Background(), exec.Command("sleep", "60"), procgroup.WithLimits(hookedLimits),
		procgroup.WithOptions(timeout.WithName("tool"), timeout.WithHooks(hooks)))
	_ = say.Encode(hooked{Hook: "Wait", Err: fmt.Sprint(err)})
	return 0
}

// SPEC 6.24: every hook that an execution has is called for a command, too, but for those of
// functions that are abandoned. The process is stopped for a while, for the sake of Stalled.
func TestEveryHook(t *testing.T) {
	t.Parallel()
	cmd := command("hooked")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	said := map[string]hooked{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var h hooked
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err, lines.Text())
		}
		said[h.Hook] = h
		if h.Hook == "Started" {
			stop := cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(hookedLimits.Idle * 7 / 4) // more than the limit and the slack of its timer
			if err := errors.Join(stop, cmd.Process.Signal(syscall.SIGCONT)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stopped := said["Wait"].Err
	if stopped == "" || said["Stalled"].Stalls == 0 {
		t.Errorf("Wait returns %q, and Stalled is %+v", stopped, said["Stalled"])
	}
	want := map[string]hooked{ // but for what is the same for all
		"Context":   {State: "running", Err: "<nil>"},
		"Started":   {State: "running", Err: "<nil>"},
		"Closing":   {State: "running", Err: "<nil>"},
		"NearIdle":  {State: "near idle", Err: "<nil>"},
		"Stalled":   {State: "stalled", Err: "<nil>"},
		"Exceeded":  {State: "stopping", Err: stopped},
		"Finished":  {State: "ended", Err: stopped},
		"Abandoned": {},
		"Returned":  {},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[timeout.Hooks]()) {
		w, known := want[field.Name]
		h, called := said[field.Name]
		if !known || called != (w.State != "") {
			t.Errorf("%s: this test knows it: %v; called: %v", field.Name, known, called)
			continue
		}
		if !called {
			continue
		}
		limits := hookedLimits
		limits.Grace = 5*time.Second + time.Second
		w.Hook, w.Tool, w.Limits, w.Stalls, w.ID, w.Of = field.Name, "tool", limits, h.Stalls, said["Started"].ID, said["Started"].ID
		switch field.Name {
		case "Context":
			w.Of = 0 // the caller's context
		case "Closing":
			w.State = h.State // the stop may have come first
		}
		if diff := cmp.Diff(w, h); diff != "" {
			t.Error(field.Name, diff)
		}
	}
}

// A hook that panics or ends its goroutine ends neither the process nor the call, and the
// others are called all the same. Nothing of the command is left.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	fail := map[string]func(context.Context, timeout.Snapshot){
		"panic":  func(context.Context, timeout.Snapshot) { panic("hook") },
		"goexit": func(context.Context, timeout.Snapshot) { runtime.Goexit() },
	}
	for how, f := range fail {
		for which, hooks := range map[string]timeout.Hooks{
			"Started": {Started: f}, "Exceeded": {Exceeded: f}, "Finished": {Finished: f},
			"all": {Started: f, Exceeded: f, Finished: f},
		} {
			t.Run(how+" in "+which, func(t *testing.T) {
				t.Parallel()
				tool := "hook: " + t.Name()
				watcher := calls{tool: tool}
				defer timeout.Watch(watcher.hooks())()
				other := calls{tool: tool}
				var log logBuffer
				cmd, pids := family(t, "deaf")
				r, err := procgroup.Run(context.Background(), cmd, procgroup.WithLimits(timeout.Config{Total: shortLimit}), procgroup.WithKillGrace(-1),
					procgroup.WithOptions(timeout.WithName(tool), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
						timeout.WithHooks(hooks), timeout.WithHooks(other.hooks())))
				code, exceeded := 124, 1
				if how == "goexit" && hooks.Started != nil {
					if code, exceeded = 1, 0; r != nil || !errors.Is(err, timeout.ErrGoexit) || len(pids()) > 0 {
						t.Errorf("%v, %+v", err, r)
					}
				}
				if timeout.ExitCode(err) != code || !strings.Contains(log.String(), "hook ") {
					t.Errorf("error %v, log %s", err, &log)
				}
				for _, c := range []*calls{&watcher, &other} {
					finished := c.of("finished")
					if len(c.of("started")) != 1 || len(c.of("exceeded")) != exceeded || len(finished) != 1 || finished[0].Err != err {
						t.Errorf("want the start, %d limits, and the end with %v: %+v", exceeded, err, c.all)
					}
				}
				mustBeDead(t, pids())
			})
		}
	}
}

// The limits of a command can be observed, and on a clock that a test moves.
func TestObserveOnly(t *testing.T) {
	t.Parallel()
	own := calls{tool: "observed"}
	r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sleep 12; echo done"), procgroup.WithLimits(timeout.Config{Idle: 1200 * time.Millisecond, Total: 2200 * time.Millisecond}),
		procgroup.WithOptions(timeout.WithName("observed"), timeout.WithObserveOnly(), timeout.WithHooks(own.hooks())))
	check(t, r, err, want{})
	exceeded, finished := own.of("exceeded"), own.of("finished")
	if len(exceeded) != 2 || !strings.Contains(string(exceeded[0].Stack), "sleep 12") || len(finished) != 1 || finished[0].Observed == nil || finished[0].Err != nil {
		t.Errorf("%+v, %+v", exceeded, finished)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	ready := make(chan struct{})
	p, err := procgroup.Start(context.Background(), command("deaf"), procgroup.WithLimits(timeout.Config{Idle: time.Hour}), procgroup.WithKillGrace(-1),
		procgroup.WithOptions(timeout.WithName("tool"), timeout.WithClock(mock)),
		procgroup.WithOutput(func(c procgroup.Chunk) {
			if len(c.Data) > 0 {
				close(ready)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	mock.Add(time.Hour)
	r, err := p.Wait()
	check(t, r, err, want{code: 124, reason: procgroup.IdleTimeout, message: "tool process timed out after 3600000ms without output."})
}

// The log has the execution's outcome, and the processes that were left behind.
func TestLogger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		opts         []procgroup.Option
		want, not    string
	}{
		{"success", "echo a", nil, "", "level="},
		{"failure", "exit 3", nil, "", "level="},
		{"held", "sleep 60 & exit 0", nil, `level=WARN msg="command left something behind" tool=tool`, "timed out"},
		{"held by orphans", "sleep 1 & exit 0", []procgroup.Option{procgroup.WithOrphans()}, "", "level="},
		{"limit", "sleep 60", []procgroup.Option{procgroup.WithLimits(timeout.Config{Total: shortLimit})}, `level=WARN msg="tool timed out" tool=tool`, "left"},
		{"corrected limits", "echo a", []procgroup.Option{procgroup.WithLimits(timeout.Config{Total: -1})}, "level=WARN", "left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
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

// A command is distinguished from the tool that runs it.
func TestOperation(t *testing.T) {
	got := map[string]timeout.Operation{}
	defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
		if s.Tool == "tool" || s.Tool == "command" { // those of other tests run too
			got[s.Tool] = s.Operation
		}
	}})()
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		_, err := procgroup.Run(ctx, exec.Command("true"), procgroup.WithOptions(timeout.WithName("command")))
		return err
	}, timeout.WithName("tool"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]timeout.Operation{"tool": timeout.OperationTool, "command": timeout.OperationCommand}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
