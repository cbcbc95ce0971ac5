package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const s = time.Second

var (
	legacy   = task.Client{Version: "2025-11-25", Principal: "ann"}
	declared = task.Client{Version: "2026-07-28", Declared: true, Principal: "ann"}
	knowing  = task.Client{Version: "2026-07-28", Principal: "ann"} // nothing of tasks
)

// text is a result with one text.
func text(t string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": t}}}
}

// encode is what an adapter makes of what a tool has returned.
func encode(value string, err error) task.Answer {
	var e *task.Error
	if errors.As(err, &e) {
		return task.Answer{Error: e}
	}
	fields := text(value)
	if err != nil {
		fields = text(toolcall.Text(err, value))
		fields["isError"] = true
		if o, ok := toolcall.OutcomeOf(err); ok {
			fields["_meta"] = map[string]any{toolcall.OutcomeKey: o}
		}
	}
	raw, _ := json.Marshal(fields)
	return task.Answer{Result: raw}
}

// tool runs a function as a tool of a server.
func tool(limits timeout.Config, f func(ctx context.Context) (string, error)) func(context.Context, map[string]json.RawMessage) (string, error) {
	return func(ctx context.Context, _ map[string]json.RawMessage) (string, error) {
		return toolcall.Do(ctx, &toolcall.Server{Options: []timeout.Option{limits}}, toolcall.Call{Tool: "build"}, f)
	}
}

// lasting is a tool that takes d.
func lasting(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "half", context.Cause(ctx)
		}
	}
}

// get is the answer to tasks/get, as a client reads it.
func serve(t testing.TB, tasks *task.Tasks, c task.Client, method, params string) (map[string]any, error) {
	t.Helper()
	fields, err := tasks.Serve(t.Context(), task.Request{Method: method, Params: json.RawMessage(params), Client: c})
	if err != nil {
		return nil, err
	}
	return wire(t, fields), nil
}

func wire(t testing.TB, fields map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func params(id string) string { return fmt.Sprintf(`{"taskId":%q}`, id) }

// SPEC 11.1: the handle at the soft limit and not before; a result that falls due with it wins; never
// both, and the tool is called once.
func TestSoftLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		soft   time.Duration
		takes  time.Duration
		asTask bool
		after  time.Duration // the answer
	}{
		{"long before", 10 * s, s, false, s},
		{"a nanosecond before", 10 * s, 10*s - 1, false, 10*s - 1},
		{"together", 10 * s, 10 * s, false, 10 * s},
		{"a nanosecond after", 10 * s, 10*s + 1, true, 10 * s},
		{"long after", 10 * s, time.Minute, true, 10 * s},
		{"at once", -1, time.Minute, true, 0},
		{"at once, and the tool too", -1, 0, true, 0},
		{"never", 0, time.Minute, false, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 20 { // timers of one instant fire in random order
				synctest.Test(t, func(t *testing.T) {
					tasks := task.New()
					calls, start := 0, time.Now()
					value, record, err := task.Do(t.Context(), tasks, task.Call{Tool: "build", Client: declared, Soft: tc.soft},
						tool(timeout.Default(), func(ctx context.Context) (string, error) {
							calls++
							return lasting(tc.takes)(ctx)
						}), encode)
					if err != nil || (record != nil) != tc.asTask || (value != "") == tc.asTask || time.Since(start) != tc.after {
						t.Fatalf("%q, %v, %v after %v", value, record, err, time.Since(start))
					}
					if record == nil {
						return
					}
					got, err := serve(t, tasks, declared, "tasks/get", params(record.ID))
					if err != nil || got["status"] != "working" && tc.takes > 0 {
						t.Errorf("at the handle: %v, %v", got, err)
					}
					time.Sleep(max(tc.takes-tc.after, 0))
					synctest.Wait()
					got, err = serve(t, tasks, declared, "tasks/get", params(record.ID))
					want := text("done")
					want["resultType"] = "complete"
					if diff := cmp.Diff(wire(t, want), got["result"]); err != nil || got["status"] != "completed" || diff != "" {
						t.Errorf("%v, %v: %s", got, err, diff)
					}
					if calls != 1 {
						t.Errorf("%d calls", calls)
					}
				})
			}
		})
	}
}

// SPEC 11.4, 11.5: the message of the heartbeat; cancel is an abort, and the status is cancelled at once.
func TestCancel(t *testing.T) {
	for _, c := range []task.Client{legacy, declared} {
		t.Run(c.Version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := task.New()
				var stopped error
				_, record, err := task.Do(t.Context(), tasks, task.Call{Tool: "build", Client: c, Asked: true, Soft: 10 * s},
					func(ctx context.Context, _ map[string]json.RawMessage) (string, error) {
						v, err := tool(timeout.Default(), func(ctx context.Context) (string, error) {
							for i := range 100 {
								progress.Report(ctx, progress.Update{Progress: float64(i), Total: 100, Message: "main.go"})
								if _, err := lasting(s)(ctx); err != nil {
									break
								}
							}
							time.Sleep(3 * s)
							heartbeat.Beat(ctx)
							return "half", nil
						})(ctx, nil)
						stopped = err
						return v, err
					}, encode)
				if err != nil || record == nil {
					t.Fatal(record, err)
				}
				time.Sleep(20*s + 1)
				got, err := serve(t, tasks, c, "tasks/get", params(record.ID))
				if err != nil || got["status"] != "working" || got["statusMessage"] == "" {
					t.Errorf("%v %v", got, err)
				}
				t.Log(got)
				got, err = serve(t, tasks, c, "tasks/cancel", params(record.ID))
				t.Log(got, err)
				got, err = serve(t, tasks, c, "tasks/get", params(record.ID))
				if err != nil || got["status"] != "cancelled" {
					t.Errorf("%v %v", got, err)
				}
				time.Sleep(10 * s)
				synctest.Wait()
				if timeout.ExitCode(stopped) != timeout.ExitAborted || !errors.Is(stopped, task.ErrCancelled) {
					t.Errorf("the tool: %v", stopped)
				}
				again, err := serve(t, tasks, c, "tasks/get", params(record.ID))
				if diff := cmp.Diff(got, again); err != nil || diff != "" {
					t.Errorf("%v %s", err, diff)
				}
			})
		})
	}
}
