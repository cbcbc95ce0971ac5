package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errOutage = errors.New("no connection")

// A hooked store asks before each call whether that fails, and how soon.
type hooked struct {
	task.Store
	before func(ctx context.Context, method string, r task.Record) error
}

func hook(before func(ctx context.Context, method string, r task.Record) error) *hooked {
	return &hooked{task.NewMemory(0, 0), before}
}

func (h *hooked) Create(ctx context.Context, r task.Record) (task.Record, error) {
	if err := h.before(ctx, "Create", r); err != nil {
		return task.Record{}, err
	}
	return h.Store.Create(ctx, r)
}

func (h *hooked) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if err := h.before(ctx, "Get", task.Record{}); err != nil {
		return task.Record{}, err
	}
	return h.Store.Get(ctx, owner, id)
}

func (h *hooked) Update(ctx context.Context, r task.Record) (task.Record, error) {
	if err := h.before(ctx, "Update", r); err != nil {
		return task.Record{}, err
	}
	return h.Store.Update(ctx, r)
}

func (h *hooked) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	if err := h.before(ctx, "Wait", task.Record{}); err != nil {
		return task.Record{}, err
	}
	return h.Store.Wait(ctx, owner, id, after)
}

// faulty is a store that is slow to create, or away.
func faulty(slow *time.Duration, away *atomic.Bool, tries *atomic.Int32) *hooked {
	return hook(func(ctx context.Context, method string, _ task.Record) error {
		switch {
		case away.Load():
			tries.Add(1)
			return errOutage
		case method == "Create":
			_, err := lasting(*slow)(ctx)
			return err
		}
		return nil
	})
}

// SPEC 11.1, 11.7: a call that the store cannot take stays plain, and a store that is slow or away
// delays no answer: a result that comes while the record is being stored is answered at once.
func TestSlowStore(t *testing.T) {
	for _, tc := range []struct {
		name   string
		soft   time.Duration
		slow   time.Duration
		away   bool
		asTask bool
		after  time.Duration
	}{
		{"slow", 10 * s, 2 * s, false, true, 12 * s},
		{"slower than the call", 10 * s, 4 * s, false, false, 13 * s},
		{"too slow", 10 * s, time.Minute, false, false, 13 * s},
		{"too slow for long", 2 * s, time.Minute, false, false, 13 * s},
		{"away", 10 * s, 0, true, false, 13 * s},
		{"at once, slow", -1, 500 * time.Millisecond, false, true, 500 * time.Millisecond},
		{"at once, slower", -1, 2 * s, false, true, 2 * s},
		{"at once, too slow", -1, time.Minute, false, false, 14 * s},
		{"at once, away", -1, 0, true, false, 13 * s},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var away atomic.Bool
			away.Store(tc.away)
			f := faulty(&tc.slow, &away, new(atomic.Int32))
			tasks := newTasks(t, &task.Tasks{Store: f, MaxRunning: 1})
			start := time.Now()
			value, record, err := do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: tc.soft}, tool(timeout.Default(), lasting(13*s)), encode)
			if (record != nil) != tc.asTask || !tc.asTask && value != "done" || err != nil || time.Since(start) != tc.after {
				t.Errorf("%q, %v, %v after %v", value, record, err, time.Since(start))
			}
			time.Sleep(15 * s)
			if left, _, err := f.Store.List(t.Context(), "task/principal:ann", "", 10); err != nil || len(left) > 1 || len(left) == 1 && !left[0].Status.Final() {
				t.Errorf("left in the store: %+v, %v", left, err)
			}
			synctest.Wait()
			tc.slow = 0
			away.Store(false)
			begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s))) // the permit is back
		})
	}
}

// SPEC 11.5: a cancel that the store does not take is kept, and done when the store can be reached again.
func TestCancelIsKept(t *testing.T) {
	for _, tc := range []struct {
		name    string
		outage  time.Duration
		tries   int // of the client, which asks again
		most    int // running calls
		aborted bool
	}{
		{"once", 20 * s, 1, 0, true},
		{"again and again", 20 * s, 5, 0, true},
		{"no room for another call", 20 * s, 1, 1, true},
		{"longer than the retention", 5 * time.Minute, 1, 0, false},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var away atomic.Bool
			f := faulty(new(time.Duration), &away, new(atomic.Int32))
			tasks := newTasks(t, &task.Tasks{Store: f, Retention: time.Minute, MaxRunning: tc.most})
			stopped := make(chan time.Time, 1)
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
				defer heartbeat.Hold(ctx)()
				select {
				case <-ctx.Done():
					if errors.Is(context.Cause(ctx), task.ErrCancelled) {
						stopped <- time.Now()
					}
				case <-time.After(10 * time.Minute):
				}
				return "", nil
			}))
			away.Store(true)
			back := time.Now().Add(tc.outage)
			for range tc.tries {
				_, err := serve(t, tasks, declared, "tasks/cancel", params(r.ID))
				if err == nil || !strings.Contains(err.Error(), "is cancelled when it can be reached again") {
					t.Errorf("tasks/cancel: %v", err)
				}
			}
			time.Sleep(time.Until(back))
			away.Store(false)
			time.Sleep(15 * s)
			select {
			case at := <-stopped:
				if !tc.aborted || at.Before(back) {
					t.Errorf("aborted %v after the outage", at.Sub(back))
				}
			default:
				if tc.aborted {
					t.Error("the tool works on")
				}
			}
			got, err := f.Get(t.Context(), r.Owner, r.ID)
			if tc.aborted != (err == nil && got.Status == task.Cancelled) {
				t.Errorf("the record: %+v, %v", got, err)
			}
		})
	}
	bubble(t, "shutdown", func(t *testing.T) {
		var away atomic.Bool
		var tries atomic.Int32
		tasks := newTasks(t, &task.Tasks{Store: faulty(new(time.Duration), &away, &tries)})
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s)))
		time.Sleep(2 * s)
		away.Store(true)
		for range 2 {
			_, _ = serve(t, tasks, declared, "tasks/cancel", params(r.ID))
		}
		if _, err := serve(t, tasks, declared, "tasks/get", params(fmt.Sprintf("cancel %s of %s", r.ID, r.Owner))); err == nil {
			t.Error("a cancel that is kept is no task")
		}
		begun := time.Now()
		if err := tasks.Close(); err != nil || time.Since(begun) > s {
			t.Errorf("Close: %v after %v", err, time.Since(begun))
		}
		tries.Store(0)
		if time.Sleep(time.Minute); tries.Load() > 0 {
			t.Errorf("the store was asked %d times after Close", tries.Load())
		}
	})
}

// SPEC 11.7: storing is tried again until a shutdown has given up, and no longer; one that does not wait leaves one
// attempt.
func TestShutdownWithoutTheStore(t *testing.T) {
	for name, run := range map[string]function{
		"result": func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (reply, error) {
			v, err := lasting(10 * s)(ctx)
			return reply{text: v}, err
		},
		"question": asking,
	} {
		bubble(t, name, func(t *testing.T) {
			var away atomic.Bool
			var tries atomic.Int32
			tasks := newTasks(t, &task.Tasks{Store: faulty(new(time.Duration), &away, &tries)})
			if _, _, err := do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: -1}, run, encodeAsking); err != nil {
				t.Fatal(err)
			}
			time.Sleep(s)
			away.Store(true)
			time.Sleep(time.Minute)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*s)
			defer cancel()
			if err := tasks.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*s {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			before := tries.Load()
			time.Sleep(time.Hour)
			if n := tries.Load() - before; n > 3 {
				t.Errorf("%d attempts after the shutdown", n)
			}
		})
	}
	bubble(t, "at once", func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			time.Sleep(s) // or it may be stored before the shutdown has looked
			return "", ctx.Err()
		}))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tasks.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(2 * s)
		if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "completed" {
			t.Errorf("%v", got)
		}
	})
}

// picky is a store that refuses some updates.
func picky(refuse func(task.Record) error) *hooked {
	return hook(func(_ context.Context, method string, r task.Record) error {
		if method == "Update" {
			return refuse(r)
		}
		return nil
	})
}

// A task ends whatever the store makes of its answer: when the retention has passed, without it; and where there is no
// room for the end either, as soon as there is, with the answer if it fits. One that is too large says so at once.
func TestRefusedAnswer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		refuse func(r task.Record, after time.Duration) error
		after  time.Duration // the end, at the latest
		want   string        // the error; "" is none
	}{
		{"the answer never", func(r task.Record, _ time.Duration) error {
			if r.Answer != nil && r.Answer.Result != nil {
				return errOutage
			}
			return nil
		}, 10*time.Minute + 15*s, "the result could not be stored; last: file 37"},
		{"no room for a while", func(r task.Record, after time.Duration) error {
			if r.Status.Final() && after < 20*time.Minute {
				return task.ErrTooLarge
			}
			return nil
		}, 20*time.Minute + 5*s, ""},
		{"too large", func(r task.Record, _ time.Duration) error {
			if r.Answer != nil && r.Answer.Result != nil {
				return task.ErrTooLarge
			}
			return nil
		}, 11 * s, "the result of 43 bytes is too large to be stored; last: file 37"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			start := time.Now()
			store := picky(func(r task.Record) error { return tc.refuse(r, time.Since(start)) })
			tasks := newTasks(t, &task.Tasks{Store: store})
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
				heartbeat.BeatWith(ctx, progress.Update{Message: "file 37"})
				return lasting(10 * s)(ctx)
			}))
			time.Sleep(tc.after - 10*s)
			if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "working" {
				t.Errorf("before: %v", got)
			}
			time.Sleep(10 * s)
			got := mustServe(t, tasks, declared, "tasks/get", r.ID)
			e, _ := got["error"].(map[string]any)
			if failed := got["status"] == "failed"; failed != (tc.want != "") || failed && e["message"] != tc.want || !failed && got["result"] == nil {
				t.Errorf("%v", got)
			}
		})
	}
}

// A task whose record is gone stops, since nobody could fetch its result; one that a replicated store does not know yet
// does not.
func TestRecordGone(t *testing.T) {
	for _, short := range []bool{false, true} {
		bubble(t, fmt.Sprint(short), func(t *testing.T) {
			var gone atomic.Bool
			tasks := newTasks(t, &task.Tasks{Store: hook(func(_ context.Context, method string, _ task.Record) error {
				if method == "Wait" { // it looks again and again
					time.Sleep(100 * time.Millisecond)
				}
				switch {
				case gone.Load():
					return task.ErrUnknown
				case method == "Wait":
					return errOutage
				}
				return nil
			})})
			stopped := make(chan error, 1)
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
				if short {
					return lasting(100 * time.Millisecond)(ctx)
				}
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return "", nil
			}))
			gone.Store(true)
			start := time.Now()
			if short {
				time.Sleep(300 * time.Millisecond)
				gone.Store(false)
				time.Sleep(s)
				if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "completed" {
					t.Errorf("%v", got)
				}
			} else if err := <-stopped; !errors.Is(err, task.ErrLost) || errors.Is(err, task.ErrCancelled) || time.Since(start) < 300*time.Millisecond || time.Since(start) > 10*s {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// SPEC 13.3: a tool whose process was declared gone, or a question of it, is aborted with that cause; nobody has
// cancelled it. The task says so in both protocols.
func TestDeclaredGone(t *testing.T) {
	busy := func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (reply, error) {
		v, err := tool(timeout.Default(), lasting(time.Minute))(ctx, run, nil)
		return reply{text: v}, err
	}
	for name, run := range map[string]function{"tool": busy, "question": asking} {
		bubble(t, name, func(t *testing.T) {
			m := task.NewMemory(0, 0)
			tasks := newTasks(t, &task.Tasks{Store: m})
			stopped := make(chan error, 1)
			_, r, err := do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: -1}, run, func(v reply, err error) task.Answer {
				if err != nil {
					stopped <- err
				}
				return encodeAsking(v, err)
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(s)
			stored, err := m.Get(t.Context(), r.Owner, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			stored.Message = "main.go"
			if _, err := m.Update(t.Context(), stored.Lost(time.Now())); err != nil {
				t.Fatal(err)
			}
			err = <-stopped
			if !errors.Is(err, task.ErrLost) || errors.Is(err, task.ErrCancelled) || !strings.Contains(err.Error(), "declared this process gone") || timeout.ExitCode(err) != timeout.ExitAborted {
				t.Errorf("%v, %d", err, timeout.ExitCode(err))
			}
			for _, c := range []adapter.Caller{legacy, declared} {
				if got := mustServe(t, tasks, c, "tasks/get", r.ID); got["status"] != "failed" || got["statusMessage"] != "the process that ran the task is gone; last: main.go" {
					t.Errorf("%v", got)
				}
			}
		})
	}
}

// An answer that cannot become JSON ends the task all the same: the store is one that writes JSON.
func TestNoJSON(t *testing.T) {
	for name, answer := range map[string]func() task.Answer{
		"result": func() task.Answer { return task.Answer{Result: json.RawMessage(`{"content":`)} },
		"error data": func() task.Answer {
			return task.Answer{Error: &task.Error{Code: -32000, Message: "ouch", Data: json.RawMessage(`because`)}}
		},
		"question": func() task.Answer {
			return task.Answer{Questions: map[string]json.RawMessage{"q": json.RawMessage(`{`)}}
		},
		"panic": func() task.Answer { panic("ouch") },
	} {
		bubble(t, name, func(t *testing.T) {
			tasks := newTasks(t, &task.Tasks{Store: picky(func(r task.Record) error {
				_, err := json.Marshal(r)
				return err
			})})
			_, record, err := do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s)),
				func(string, error) task.Answer { return answer() })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * s)
			got := mustServe(t, tasks, declared, "tasks/get", record.ID)
			if e, _ := got["error"].(map[string]any); got["status"] != "failed" || name == "panic" && e["message"] != "the result cannot be encoded: panic: ouch" {
				t.Errorf("%v", got)
			}
		})
	}
}

// SPEC 12.5: a cancel that the store has not taken is not answered as if it had, whether the store says so before the
// wait is over or after it.
func TestContinuationCancelsInAnOutage(t *testing.T) {
	const wait = 2 * s
	for _, takes := range []time.Duration{1, wait - 1, wait, wait + 1} {
		bubble(t, fmt.Sprint(takes), func(t *testing.T) {
			var late time.Duration
			runs := newTasks(t, &task.Tasks{Store: hook(func(_ context.Context, method string, _ task.Record) error {
				if method != "Get" || late == 0 {
					return nil
				}
				time.Sleep(late)
				late = 0
				return errOutage
			})})
			call := adapter.Call{Tool: "build", Caller: adapter.Caller{Version: "2025-06-18", Session: "one"}, Continuation: &adapter.Continuation{After: wait}}
			var cause error
			_, record, err := do(t.Context(), runs, call, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (reply, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return reply{}, cause
			}, encodeAsking)
			if err != nil {
				t.Fatal(err)
			}
			cancel := json.RawMessage(fmt.Sprintf(`{"id":%q,"cancel":true}`, record.ID))
			late = takes
			for _, want := range []string{"The store of the calls cannot be reached", ""} {
				fields, err := waitTool(t.Context(), call.Continuation, runs, call.Caller, string(cancel), nil)
				if text := said(fields); err != nil || !strings.HasPrefix(text, want) || (want == "") != (cause != nil) {
					t.Errorf("%q, %v, want %q; the tool has ended because of %v", text, err, want, cause)
				}
			}
		})
	}
}
