package adapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 11.5: the status of a cancelled task is final at once, and its result is what a plain call would have
// been answered with, as soon as the tool has returned. It does not matter which form the task has.
func TestResultOfACancelledTask(t *testing.T) {
	const aborted = "Tool was aborted: the task was cancelled"
	limits := timeout.Config{Total: time.Hour, Grace: 5 * s}
	for _, tc := range []struct {
		name   string
		tool   func(ctx context.Context) (string, error)
		want   string        // of an isError result; otherwise the message of an error
		isText bool          // it is a result
		after  time.Duration // the cancel
	}{
		{"partial output", lasting(time.Hour), aborted + "\n\nPartial output:\nhalf", true, 0},
		{"how far it was", func(ctx context.Context) (string, error) {
			progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			<-ctx.Done()
			return "", ctx.Err()
		}, aborted + "\nlast: main.go 3 of 10", true, 0},
		{"late", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			time.Sleep(3 * s)
			return "half", nil
		}, aborted + "\n\nPartial output:\nhalf", true, 3 * s},
		{"deaf", func(context.Context) (string, error) { time.Sleep(time.Hour); return "", nil }, aborted, true, 5 * s},
		{"panic", func(ctx context.Context) (string, error) { <-ctx.Done(); panic("ouch") }, aborted, true, 0},
		{"too large", func(ctx context.Context) (string, error) { <-ctx.Done(); return strings.Repeat("x", 1<<20), nil },
			"the task was cancelled; the result of ", false, 0},
	} {
		for _, c := range []adapter.Caller{legacy, declared} {
			bubble(t, tc.name+" "+c.Version, func(t *testing.T) {
				tasks := newTasks(t, &task.Tasks{Store: task.NewMemory(0, 100<<10)})
				r := begin(t, t.Context(), tasks, adapter.Call{Caller: c, Asked: asks, Soft: -1}, tool(limits, tc.tool))
				time.Sleep(s)
				if _, err := serve(t, tasks, c, "tasks/cancel", params(r.ID)); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if got, err := serve(t, tasks, legacy, "tasks/get", params(r.ID)); err != nil || got["status"] != "cancelled" {
					t.Errorf("right after the cancel: %v, %v", got, err)
				}
				got, err := serve(t, tasks, legacy, "tasks/result", params(r.ID))
				if took := time.Since(begun); took != tc.after {
					t.Errorf("after %v, want %v", took, tc.after)
				}
				var e *task.Error
				switch {
				case !tc.isText:
					if !errors.As(err, &e) || !strings.HasPrefix(e.Message, tc.want) {
						t.Errorf("%v, %v", got, err)
					}
				case err != nil || said(got) != tc.want || wire(t, got)["isError"] != true:
					t.Errorf("%v, %v", got, err)
				default:
					meta, _ := got["_meta"].(map[string]any)
					if o, _ := meta[toolcall.OutcomeKey].(map[string]any); o["kind"] != "aborted" || o["exitCode"] != 130. {
						t.Errorf("outcome %v", meta)
					}
				}
				if got, err := serve(t, tasks, legacy, "tasks/get", params(r.ID)); err != nil || got["status"] != "cancelled" || got["statusMessage"] != "the task was cancelled" {
					t.Errorf("after the result: %v, %v", got, err)
				}
			})
		}
	}
}

// What the process of a cancelled task does not say is not waited for without end.
func TestResultOfACancelledTaskThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := task.NewMemory(0, 0)
		tasks := &task.Tasks{Store: store}
		r := begin(t, t.Context(), &task.Tasks{Store: store}, adapter.Call{Caller: legacy, Asked: asks, Soft: -1},
			tool(timeout.Config{Grace: time.Hour}, func(context.Context) (string, error) { time.Sleep(time.Hour); return "", nil }))
		time.Sleep(s) // the tool has begun
		if _, err := serve(t, tasks, legacy, "tasks/cancel", params(r.ID)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		got, err := serve(t, tasks, legacy, "tasks/result", params(r.ID))
		var e *task.Error
		if !errors.As(err, &e) || e.Code != codeInternal || e.Message != "the task was cancelled" || time.Since(begun) != timeout.DefaultGrace+3*s {
			t.Errorf("%v, %v after %v", got, err, time.Since(begun))
		}
		time.Sleep(2 * time.Hour)
	})
}
