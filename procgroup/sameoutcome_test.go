//go:build linux

package procgroup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// A call is what one hook was called with.
type call struct {
	hook string
	ctx  context.Context
	timeout.Snapshot
}

// calls notes the hooks that are called for the tool of one name.
type calls struct {
	tool string
	then func(call)

	mu  sync.Mutex
	all []call
}

func (c *calls) hooks() timeout.Hooks {
	note := func(name string) func(context.Context, timeout.Snapshot) {
		return func(ctx context.Context, s timeout.Snapshot) {
			if s.Tool != c.tool {
				return // of another test
			}
			c.mu.Lock()
			c.all = append(c.all, call{name, ctx, s})
			c.mu.Unlock()
			if c.then != nil {
				c.then(call{name, ctx, s})
			}
		}
	}
	return timeout.Hooks{
		Started: note("started"), Exceeded: note("exceeded"), Finished: note("finished"),
		Abandoned: note("abandoned"), Returned: note("returned"),
	}
}

func (c *calls) of(hook string) (all []timeout.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one.hook == hook {
			all = append(all, one.Snapshot)
		}
	}
	return all
}

// A page row is what the page says of one execution. Durations are in milliseconds.
type pageRow struct {
	State, Outcome, Error, Stack string
	TotalMs, IdleMs              float64
}

// pageOf asks the page for one execution.
func pageOf(id uint64) (row pageRow, found bool) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("http://localhost/debug/tools?format=json&id=%d", id), nil)
	r.RemoteAddr = "127.0.0.1:1"
	inspect.Handler(inspect.Options{}).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return row, false
	}
	if err := json.Unmarshal(w.Body.Bytes(), &row); err != nil {
		panic(err)
	}
	return row, true
}

// A line of the log, as far as it says how a command ended. The error is a text, or a group
// where the command was stopped.
type logLine struct {
	Msg   string
	Tool  string
	Error json.RawMessage
	Stack string
}

func logLinesOf(log string) (all []logLine) {
	for line := range strings.Lines(log) {
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			panic(err)
		}
		all = append(all, l)
	}
	return all
}

var errEnough = errors.New("enough")

// running is the execution of a tool that is watched.
func running(tool string) *timeout.Execution {
	for _, x := range timeout.Running() {
		if x.Snapshot().Tool == tool {
			return x
		}
	}
	return nil
}

// abortAt aborts the command by hand as soon as it prints something.
func abortAt(tool string) procgroup.Option {
	return procgroup.Capture{Each: func(procgroup.Chunk) { running(tool).Abort(errEnough) }}
}

// under runs something in an execution with these limits.
func under(limits timeout.Config) func(context.Context, func(context.Context)) {
	return func(ctx context.Context, run func(context.Context)) {
		_ = timeout.Run(ctx, func(ctx context.Context) error { run(ctx); return nil }, limits)
	}
}

// SPEC 6.24, 4.7: whatever the outcome, hooks, watchers, the page and the log say what Wait returns: the same error, code, limits
// and stack.
func TestEverybodyIsTold(t *testing.T) {
	inspect.Handler(inspect.Options{}) // from here on everything is recorded
	type test struct {
		name    string
		script  Script
		real    *exec.Cmd // of this system, which does not start, in place of the script
		set     func(*exec.Cmd)
		opts    []procgroup.Option
		context func(context.Context, func(context.Context)) // nil is the machine's
		code    int
		outcome string // as the page calls it; "" where there was no execution
		is      error
		left    bool // something behind
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	idle, total := timeout.Config{Idle: 3 * time.Second}, timeout.Config{Total: 3 * time.Second}
	limits := func(c timeout.Config) procgroup.Option { return procgroup.Limits(c) }
	silent := Script{lasts}
	holds := Step{Do: Fork, Script: Script{lasts}}
	quiet := Step{Do: Fork, Script: Script{{Do: Close, FD: 1}, {Do: Close, FD: 2}, lasts}}
	writer := func(write func([]byte) (int, error)) func(*exec.Cmd) {
		return func(cmd *exec.Cmd) { cmd.Stdout = writerFunc(write) }
	}
	reader := func(read func([]byte) (int, error)) func(*exec.Cmd) {
		return func(cmd *exec.Cmd) { cmd.Stdin = io.MultiReader(strings.NewReader("a"), readerFunc(read)) }
	}
	for _, tt := range []test{
		{name: "success", script: Script{prints}, outcome: "ok"},
		{name: "its own code", script: Script{exits(3)}, code: 3, outcome: "error"},
		{name: "not found", real: exec.Command("/no/such/command"), code: 127, outcome: "error"},
		{name: "no such containment", real: exec.Command("true"), opts: []procgroup.Option{procgroup.Job}, code: 1, outcome: "error", is: errors.ErrUnsupported},
		{name: "the command's context is done", real: exec.CommandContext(done, "true"), code: 130, outcome: "aborted", is: timeout.ErrAborted},
		{name: "an idle limit", script: silent, opts: []procgroup.Option{limits(idle)}, code: 124, outcome: "idle timeout", is: timeout.ErrIdle},
		{name: "a total limit", script: silent, opts: []procgroup.Option{limits(total)}, code: 124, outcome: "total timeout", is: timeout.ErrTotal},
		{name: "an abort", script: Script{prints, lasts}, opts: []procgroup.Option{abortAt("an abort")}, code: 130, outcome: "aborted", is: errEnough},
		{name: "an enclosing idle limit", script: silent, context: under(idle), code: 124, outcome: "idle timeout", is: timeout.ErrIdle},
		{name: "another's timeout as the reason to cancel", script: silent, context: func(ctx context.Context, run func(context.Context)) {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() {
				cancel(timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil }, idle))
			}()
			run(ctx)
		}, code: 130, outcome: "aborted", is: timeout.ErrAborted},
		{name: "cancelled from the start", script: silent, context: func(_ context.Context, run func(context.Context)) { run(done) }, code: 130, is: timeout.ErrAborted},
		{name: "too much output", script: Script{writes(4), {Do: Write, FD: 2, N: 5}, lasts}, opts: []procgroup.Option{procgroup.Capture{Limit: 8}}, code: 153, outcome: "too much output", is: procgroup.TooMuchOutput},
		{name: "a writer fails", script: Script{prints}, set: writer(func([]byte) (int, error) { return 0, errEnough }), code: 1, outcome: "error", is: errEnough, left: true},
		{name: "a callback panics", script: Script{prints, lasts}, opts: []procgroup.Option{procgroup.Capture{Each: func(procgroup.Chunk) { panic("callback") }}}, code: 130, outcome: "aborted", is: timeout.ErrAborted},
		{name: "a stream is held", script: Script{holds, exits(0)}, outcome: "ok", left: true},
		{name: "orphans", script: Script{quiet, exits(0)}, opts: []procgroup.Option{procgroup.Stop{Orphans: true}}, outcome: "ok"},
		{name: "waits for input", script: Script{prints, {Do: Read, N: 1}, {Do: Read, N: 1}}, set: reader(func([]byte) (int, error) { time.Sleep(time.Hour); return 0, io.EOF }),
			opts: []procgroup.Option{procgroup.Input{Stop: true}}, code: 124, outcome: "waiting for input", is: procgroup.WaitingForInput},
		{name: "limits that are observed", script: Script{sleeps(10 * time.Second), exits(3)}, opts: []procgroup.Option{limits(idle), procgroup.WithOptions(timeout.WithObserveOnly())}, code: 3, outcome: "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Hour) // until code of the caller's has returned
				m := New(tt.script)
				defer m.Off()
				own, all := calls{tool: tt.name}, calls{tool: tt.name}
				defer timeout.Watch(all.hooks())()
				var log logBuffer
				var r *procgroup.Result
				var err error
				opts := append([]procgroup.Option{procgroup.WithOptions(timeout.WithName(tt.name), timeout.WithHooks(own.hooks()),
					timeout.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))}, tt.opts...)
				cmd, ctx := tool(), machine.With(context.Background(), m)
				if tt.real != nil {
					cmd, ctx = tt.real, context.Background()
				}
				if tt.set != nil {
					tt.set(cmd)
				}
				run := func(ctx context.Context) { r, err = procgroup.Run(ctx, cmd, opts...) }
				if tt.context == nil {
					tt.context = func(ctx context.Context, run func(context.Context)) { run(ctx) }
				}
				tt.context(ctx, run)

				if timeout.ExitCode(err) != tt.code || (tt.is != nil && !errors.Is(err, tt.is)) || (r != nil && r.ExitCode != tt.code) {
					t.Fatalf("error %v with code %d, want %v with %d; %+v", err, timeout.ExitCode(err), tt.is, tt.code, r)
				}
				stop, _ := err.(*timeout.Error)
				for who, c := range map[string]*calls{"hooks": &own, "watchers": &all} {
					checkCalls(t, who, c, tt.outcome != "", err, stop, r)
				}
				checkLog(t, logLinesOf(log.String()), err, stop, tt.left)
				if tt.outcome != "" {
					checkPage(t, &all, tt.outcome, err)
				}
			})
		})
	}
}

// checkPage compares the page with what Wait has returned. The command is not listed any more.
func checkPage(t *testing.T, all *calls, outcome string, err error) {
	t.Helper()
	finished := all.of("finished")[0]
	row, found := pageOf(finished.ID)
	want := pageRow{
		State: "ended", Outcome: outcome, Stack: string(finished.Stack),
		TotalMs: float64(finished.Limits.Total.Microseconds()) / 1000, IdleMs: float64(finished.Limits.Idle.Microseconds()) / 1000,
	}
	if err != nil {
		want.Error = err.Error()
	}
	if diff := cmp.Diff(want, row); !found || diff != "" {
		t.Errorf("the page has it: %v\n%s", found, diff)
	}
	x := timeout.FromContext(all.all[0].ctx)
	if s := x.Snapshot(); s.State != timeout.StateEnded || s.Err != err || listed(s.ID) != nil || x.Stack() != nil {
		t.Errorf("it is still listed, or its snapshot is %+v", s)
	}
}

// checkCalls compares what hooks were told with what Wait has returned.
func checkCalls(t *testing.T, who string, c *calls, began bool, err error, stop *timeout.Error, r *procgroup.Result) {
	t.Helper()
	started, finished, exceeded := c.of("started"), c.of("finished"), c.of("exceeded")
	if n := len(c.of("abandoned")) + len(c.of("returned")); n > 0 {
		t.Errorf("%s: no command is abandoned, and they were told so", who)
	}
	if !began {
		if len(started)+len(finished)+len(exceeded) > 0 {
			t.Errorf("%s were told of a command that was never to start: %v", who, c.all)
		}
		return
	}
	if len(started) != 1 || len(finished) != 1 {
		t.Fatalf("%s: %d starts and %d ends, want 1", who, len(started), len(finished))
	}
	s := finished[0]
	limits, stack := started[0].Limits, ""
	if stop != nil {
		limits, stack = stop.Limits, string(stop.Stack)
	}
	if s.Err != err || s.Tool != c.tool || s.Operation != timeout.OperationCommand || s.State != timeout.StateEnded || s.Limits != limits || string(s.Stack) != stack {
		t.Errorf("%s were told %v, limits %+v, stack %q: %+v\nwant %v, limits %+v, stack %q", who, s.Err, s.Limits, s.Stack, s, err, limits, stack)
	}
	if stop == nil || !stop.Timeout() {
		if len(exceeded) > 0 && !s.ObserveOnly {
			t.Errorf("%s were told of a limit: %v", who, exceeded[0].Err)
		}
		return
	}
	if len(exceeded) != 1 {
		t.Fatalf("%s were told of %d limits, want 1", who, len(exceeded))
	}
	e := exceeded[0]
	if stack == "" || stack != r.Tree.String() {
		t.Errorf("the stack is %q, the result's tree\n%s", stack, r.Tree)
	}
	if e.Err.Error() != err.Error() || string(e.Stack) != stack || e.Limits != limits || e.State != timeout.StateStopping || stop.Tool != c.tool {
		t.Errorf("%s were told of the limit %v, of %q, stack %q: %+v", who, e.Err, stop.Tool, e.Stack, e)
	}
}

// checkLog compares the log with the results of Wait.
func checkLog(t *testing.T, lines []logLine, err error, stop *timeout.Error, left bool) {
	t.Helper()
	ends, leftLines := 0, 0
	for _, l := range lines {
		var group struct {
			Message  string
			ExitCode int `json:"exit_code"`
			Error    string
		}
		switch l.Msg {
		case "command left something behind":
			leftLines++
		case "command was stopped", "tool is close to its idle limit", "tool would have been stopped: its limits are only observed",
			"tool that would have been stopped has ended":
		case "tool timed out", "tool was aborted", "tool was not started":
			ends++
			if stop == nil {
				t.Errorf("the log says %q, and the error is %v", l.Msg, err)
				continue
			}
			inner := ""
			if stop.Err != nil {
				inner = stop.Err.Error()
			}
			_ = json.Unmarshal(l.Error, &group)
			if group.Message != err.Error() || group.ExitCode != timeout.ExitCode(err) || group.Error != inner || l.Stack != string(stop.Stack) || (l.Msg == "tool timed out") != (stop.Timeout() && stop.Limits != timeout.Config{}) {
				t.Errorf("the log says %s %s %q, and the error is %+v", l.Msg, l.Error, l.Stack, err)
			}
		default:
			t.Errorf("the log says %q", l.Msg)
		}
	}
	if (ends == 1) != (stop != nil) || ends > 1 {
		t.Errorf("%d lines of the end, and the error is %v", ends, err)
	}
	if left != (leftLines == 1) {
		t.Errorf("%d lines of what was left behind, want it: %v", leftLines, left)
	}
}

// SPEC 6.24: a command is listed, and is stopping, until its processes are gone and its hooks were told.
func TestListedUntilTheEnd(t *testing.T) {
	inspect.Handler(inspect.Options{})
	dying := Step{Do: Trap, Signal: syscall.SIGTERM, Script: Script{sleeps(time.Second), prints, exits(0)}}
	var id uint64
	looks := map[string]int{}
	look := func(r *Run, when string) {
		looks[when]++
		x := listed(id)
		row, found := pageOf(id)
		if x == nil || !found || x.Snapshot().State != timeout.StateStopping || (row.State != "stopping" && when != "told") {
			r.Errorf("%s: listed %v, on the page %v, %+v", when, x != nil, found, row)
		}
	}
	var r *Run
	var seen atomic.Int32
	hooks := timeout.Hooks{
		Started:  func(_ context.Context, snap timeout.Snapshot) { id = snap.ID },
		Exceeded: func(context.Context, timeout.Snapshot) { look(r, "exceeded") },
		Finished: func(context.Context, timeout.Snapshot) { look(r, "finished") },
	}
	defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, snap timeout.Snapshot) {
		if snap.ID == id {
			look(r, "told")
		}
	}})()
	Test(t, Scenario{
		Name: "a limit", Script: Script{dying, sleeps(time.Second), prints, lasts}, Set: func(run *Run) { r = run },
		Options: []procgroup.Option{limits(3*time.Second, 0), procgroup.WithOptions(timeout.WithHooks(hooks)), procgroup.Capture{Each: func(c procgroup.Chunk) {
			if len(c.Data) > 0 && seen.Add(1) == 2 {
				look(r, "the tree is being stopped")
			}
		}}},
		Check: func(r *Run) {
			want := map[string]int{"exceeded": 1, "the tree is being stopped": 1, "finished": 1, "told": 1}
			if diff := cmp.Diff(want, looks); diff != "" {
				r.Error(diff)
			}
			if row, found := pageOf(id); !found || row.State != "ended" || listed(id) != nil {
				r.Errorf("in the end listed %v, on the page %v, %+v", listed(id) != nil, found, row)
			}
		},
	})
}

// SPEC 6.12: the tree in the result is that of the limit, which the error has, wherever one looks at the processes after that.
func TestTreeIsOfTheLimit(t *testing.T) {
	first, later := make(chan string, 1), make(chan string, 1)
	Test(t, Scenario{
		Name:   "looked at later",
		Script: Script{traps(syscall.SIGTERM, sleeps(time.Second/2), Step{Do: Fork, Script: Script{sleeps(5 * time.Second)}}, sleeps(2*time.Second), exits(0)), lasts},
		Options: []procgroup.Option{limits(3*time.Second, 0), procgroup.WithOptions(timeout.WithHooks(timeout.Hooks{Exceeded: func(ctx context.Context, _ timeout.Snapshot) {
			x := timeout.FromContext(ctx)
			first <- string(x.Stack())
			time.Sleep(time.Second)
			later <- string(x.Stack())
		}}))},
		Check: func(r *Run) {
			var stop *timeout.Error
			if !errors.As(r.Err, &stop) {
				r.Fatal(r.Err)
			}
			f, l := <-first, <-later
			if n := strings.Count(f, "\n"); n != 2 || strings.Count(l, "\n") != 3 || r.Result.Tree.String() != f || string(stop.Stack) != f {
				r.Errorf("the result has\n%s\nthe error\n%s\nfirst it was\n%s\nand later\n%s", r.Result.Tree, stop.Stack, f, l)
			}
		},
	})
}

// An option of package timeout without a meaning for a command is a fault of the program's text.
func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]timeout.Option{
		"limits":          timeout.Config{Total: time.Second},
		"limits, pointer": &timeout.Config{},
		"recover":         timeout.WithRecover(),
	} {
		mustPanic(t, name, "WithOptions", func() { procgroup.WithOptions(timeout.WithName("a"), nil, o) })
	}
}

// listed returns the execution with this id that timeout.Running lists, or nil.
func listed(id uint64) *timeout.Execution {
	all := timeout.Running()
	if i := slices.IndexFunc(all, func(x *timeout.Execution) bool { return x.ID() == id }); i >= 0 {
		return all[i]
	}
	return nil
}
