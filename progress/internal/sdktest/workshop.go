package sdktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A workshop has the Config of a server with tools that become tasks, and records the calls of these tools.
type workshop struct {
	tasks *task.Tasks
	store task.Store // nil means a store in memory

	mu    sync.Mutex
	calls []string // the argument "what" of each call
	ended []error  // the causes of the calls whose contexts have ended
}

func (w *workshop) note(call string, ended error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended != nil {
		w.ended = append(w.ended, ended)
	} else {
		w.calls = append(w.calls, call)
	}
}

// config returns a Config with a tool for each way in which a call can end. Most long tools take a minute. Unless
// the name of a tool says otherwise, as late and never do, a soft limit is 30 s.
func (w *workshop) config() Config {
	w.calls, w.ended = nil, nil
	w.tasks = &task.Tasks{Poll: s, Store: w.store}
	work := func(ctx context.Context, c *Call) (*Result, error) {
		w.note(fmt.Sprint(c.Arguments["what"]), nil)
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		if Sleep(ctx, time.Minute) != nil {
			w.note("", context.Cause(ctx))
			return Text("two of three files"), nil
		}
		return &Result{Texts: []string{fmt.Sprint("done ", c.Arguments["what"])}, Structured: object{"files": 3.0}}, nil
	}
	soft := func(limits timeout.Config, soft time.Duration) policy.Tool {
		return policy.Tool{Limits: &limits, Soft: soft}
	}
	hour := timeout.Config{Total: time.Hour}
	only := soft(hour, 30*s)
	only.TaskOnly = true
	return Config{
		Tasks: w.tasks, Interval: 1,
		Policy: &policy.Policy{Default: &hour, Tools: map[string]policy.Tool{
			"work": soft(hour, 30*s), "now": soft(hour, -1), "only": only, "fails": soft(hour, -1), "breaks": soft(hour, -1), "errs": soft(hour, -1), "steps": soft(hour, 30*s), "quick": soft(hour, 30*s),
			"idle": soft(timeout.Config{Total: time.Hour, Idle: 40 * s}, 30*s), "asks": soft(hour, -1), "elicits": soft(hour, -1), "late": soft(hour, 90*s),
		}},
		Tools: map[string]Tool{
			"work": {Run: work}, "now": {Run: work}, "only": {Run: work}, "late": {Run: work}, "never": {Run: work}, "idle": {Run: work},
			"steps": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
				for i := range 9 {
					progress.Report(ctx, progress.Update{Progress: float64(i + 1), Message: fmt.Sprint("step ", i)})
					time.Sleep(20 * s)
				}
				return Text("done"), nil
			}},
			"stops": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
				<-ctx.Done()
				w.note("", context.Cause(ctx))
				return Text("part"), nil
			}},
			"quick": {Run: func(ctx context.Context, _ *Call) (*Result, error) { return Text("quick"), Sleep(ctx, 30*s-1) }},
			"fails": {Run: func(context.Context, *Call) (*Result, error) {
				time.Sleep(s)
				return &Result{IsError: true, Texts: []string{"disk is full"}}, nil
			}},
			"breaks": {Run: func(context.Context, *Call) (*Result, error) { time.Sleep(s); panic("broken") }},
			"errs":   {Run: func(context.Context, *Call) (*Result, error) { return nil, errors.New("no such file") }},
			"asks": {Run: func(_ context.Context, c *Call) (*Result, error) {
				if c.Answers["q"] != "" {
					return Text(c.Answers["q"] + " " + c.State), nil
				}
				return &Result{Ask: map[string]string{"q": "the removal of 3 files"}, State: "as it was"}, nil
			}},
			"elicits": {Run: func(ctx context.Context, c *Call) (*Result, error) {
				action, err := c.Elicit(ctx, "the removal of 3 files")
				return Text(action), err
			}},
		},
	}
}

// handle returns the task in an answer. It fails the test if the answer is not the handle of a task.
func (p *Peer) handle(m *Message) object {
	p.t.Helper()
	if m == nil || m.Result == nil {
		p.t.Fatalf("no handle: %+v", m)
	}
	h := m.Result
	if p.Version == Old {
		h, _ = h["task"].(object)
	} else if h["resultType"] != "task" {
		h = nil
	}
	if h["taskId"] == nil || h["createdAt"] == nil {
		p.t.Fatalf("no handle: %s", m.Raw)
	}
	return h
}

func (p *Peer) get(id any) object { p.t.Helper(); return p.must("tasks/get", object{"taskId": id}) }

// result waits for the end of a task, and returns the result or the error of its call. It uses tasks/result in protocol
// Old, and otherwise polls with tasks/get.
func (p *Peer) result(id any) (result, fault object) {
	p.t.Helper()
	if p.Version == Old {
		m := p.Request("tasks/result", object{"taskId": id})
		if m.Error != nil {
			return nil, object{"code": float64(m.Error.Code), "message": m.Error.Message}
		}
		return m.Result, nil
	}
	for {
		res := p.get(id)
		if status := res["status"]; status == "completed" || status == "failed" || status == "cancelled" {
			result, _ = res["result"].(object)
			fault, _ = res["error"].(object)
			return result, fault
		}
		time.Sleep(s)
	}
}

// withTasks runs a test with a workshop for each way with one of the prefixes that supports tasks. change, if not nil,
// changes the Config of the server.
func withTasks(t *testing.T, sdk SDK, change func(c *Config), test func(t *testing.T, p *Peer, w *workshop), prefixes ...string) {
	t.Helper()
	var w workshop
	over(t, sdk, func() Config {
		c := w.config()
		if change != nil {
			change(&c)
		}
		return c
	}, func(t *testing.T, p *Peer) {
		defer func() { _ = w.tasks.Close() }()
		if p.Name != "SSE" || sdk.TasksOverSSE {
			test(t, p, &w)
		}
	}, prefixes...)
}
