package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A function is what Do runs.
type function = func(context.Context, *adapter.Task, map[string]json.RawMessage) (reply, error)

// A reply is what a tool returns that asks: an answer, or questions.
type reply struct {
	text      string
	questions map[string]json.RawMessage
}

func encodeAsking(r reply, err error) task.Answer {
	if r.questions != nil {
		return task.Answer{Questions: r.questions}
	}
	return encode(r.text, err)
}

// asking asks once, after two seconds, and takes two more.
func asking(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (reply, error) {
	v, err := tool(timeout.Config{Total: 10 * s, Idle: 5 * s}, func(ctx context.Context) (string, error) {
		return lasting(2 * s)(ctx)
	})(ctx, run, nil)
	if answers == nil && err == nil {
		return reply{questions: map[string]json.RawMessage{"ok": json.RawMessage(`{"method":"elicitation/create"}`)}}, nil
	}
	if err == nil {
		v = string(answers["ok"])
	}
	return reply{text: v}, err
}

// SPEC 11.4: a question goes out as inputRequests, however long the tool has no limit that could
// stop it meanwhile, and the tool is called again with the answer.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		_, r, err := do(t.Context(), tasks, adapter.Call{Tool: "delete", Caller: declared, Soft: s}, asking, encodeAsking)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		update := func(answers string) {
			t.Helper()
			got, err := serve(t, tasks, declared, "tasks/update", `{"taskId":"`+r.ID+`","inputResponses":`+answers+`}`)
			if err != nil {
				t.Fatal(err)
			}
			exactly(t, "update", got, r.ID, `{"resultType":"complete"}`)
		}
		time.Sleep(s)
		synctest.Wait()
		exactly(t, "get", mustServe(t, tasks, declared, "tasks/get", r.ID), r.ID, `{"resultType":"complete","taskId":"ID","status":"input_required","createdAt":"2000-01-01T00:00:01.000Z","lastUpdatedAt":"2000-01-01T00:00:02.000Z","ttlMs":null,"pollIntervalMs":1000,"inputRequests":{"1.ok":{"method":"elicitation/create"}}}`)
		time.Sleep(20 * s)
		update(`{"ok":"no","2.ok":"no"}`)
		update(`{}`)
		if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "input_required" {
			t.Errorf("%v", got)
		}
		update(`{"1.ok":"yes"}`)
		update(`{"1.ok":"no"}`) // answered already
		if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "working" || got["inputRequests"] != nil {
			t.Errorf("%v", got)
		}
		time.Sleep(2 * s)
		synctest.Wait()
		exactly(t, "final", mustServe(t, tasks, declared, "tasks/get", r.ID), r.ID, `{"resultType":"complete","taskId":"ID","status":"completed","createdAt":"2000-01-01T00:00:01.000Z","lastUpdatedAt":"2000-01-01T00:00:24.000Z","ttlMs":623000,"pollIntervalMs":1000,"result":{"resultType":"complete","content":[{"type":"text","text":"\"yes\""}]}}`)
	})
}

// SPEC 7.9, 11.4: nobody answers.
func TestNoAnswer(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts progress.Wait
		ends time.Duration
	}{
		{"the default", progress.Wait{}, 122 * s},
		{"given", progress.Wait{Limit: time.Second, ProgressLimit: 3 * time.Minute}, 182 * s},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			start := time.Now()
			server := adapter.NewServer(&adapter.Options{Tasks: tasks, Await: tc.opts, Policy: &policy.Policy{Tools: map[string]policy.Tool{"delete": {Soft: s}}}}, false)
			call, _ := server.Call("delete", nil, nil, false, func() adapter.Caller { return declared })
			_, r, err := do(t.Context(), tasks, call, asking, encodeAsking)
			if err != nil || r == nil {
				t.Fatal(r, err)
			}
			time.Sleep(tc.ends - 1 - time.Since(start))
			if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != "input_required" {
				t.Errorf("before: %v", got)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			got := mustServe(t, tasks, declared, "tasks/get", r.ID)
			if result, _ := got["result"].(map[string]any); got["status"] != "completed" || got["inputRequests"] != nil || said(result) != progress.ErrNoAnswer.Error() {
				t.Errorf("%v", got)
			}
		})
	}
}

// SPEC 11.4: a task asks for as long as one of its questions does, of those that overlap.
func TestOverlappingQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
			run := adapter.TaskOf(ctx, nil)
			time.Sleep(5 * s)
			ask := func(d time.Duration) {
				_ = run.Ask(ctx, func(string, task.Form, func() (context.Context, error)) error { time.Sleep(d); return nil })
			}
			go ask(5 * s)
			ask(10 * s) // until 15 s after the start
			time.Sleep(10 * s)
			return "done", nil
		}))
		for _, tc := range []struct {
			at   time.Duration
			want string
		}{{8 * s, "input_required"}, {13 * s, "input_required"}, {18 * s, "working"}} {
			time.Sleep(tc.at - time.Since(r.Started))
			if got := mustServe(t, tasks, declared, "tasks/get", r.ID); got["status"] != tc.want {
				t.Errorf("at %v: %v", tc.at, got)
			}
		}
	})
}

// A question waits for a sign that the client has its handle, and for no longer than a second.
func TestSeen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		asked time.Duration // 0: never
		want  time.Duration
	}{{"asked for", s / 2, s / 2}, {"never asked for", 0, s}} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			start := time.Now()
			seen := make(chan time.Duration, 2)
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: legacy, Asked: asks, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
				run := adapter.TaskOf(ctx, nil)
				ended, cancel := context.WithCancelCause(ctx)
				cancel(errGone)
				ask := func(string, task.Form, func() (context.Context, error)) error { seen <- time.Since(start); return nil }
				if err := run.Ask(ended, ask); err != errGone {
					t.Errorf("%v", err)
				}
				for range 2 {
					if err := run.Ask(ctx, ask); err != nil {
						t.Error(err)
					}
				}
				for try := 0; tc.asked == 0 && try < 100; try++ { // the wait is over when it begins
					if err := run.Ask(ended, ask); err != errGone {
						t.Fatalf("%v", err)
					}
				}
				return "", nil
			}))
			other := legacy
			other.Principal = "bob"
			_, _ = serve(t, tasks, other, "tasks/get", params(r.ID)) // somebody else's asking is no sign
			if tc.asked > 0 {
				time.Sleep(tc.asked)
				mustServe(t, tasks, legacy, "tasks/get", r.ID)
			}
			if a, b := <-seen, <-seen; a != tc.want || b != tc.want {
				t.Errorf("after %v and %v", a, b)
			}
		})
	}
}

// A question may go out with the context of a tasks/result that waits.
func TestFetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		type key struct{}
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: legacy, Asked: asks, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
			fetch := func(ctx context.Context) (fetch context.Context, err error) {
				err = adapter.TaskOf(ctx, nil).Ask(ctx, func(_ string, _ task.Form, fetching func() (context.Context, error)) error {
					fetch, err = fetching()
					return err
				})
				return fetch, err
			}
			none := func() {
				limited, cancel := context.WithTimeout(ctx, s)
				defer cancel()
				if _, err := fetch(limited); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("nobody fetches: %v", err)
				}
			}
			none()
			for range 2 { // the second one is there
				if fetch, err := fetch(ctx); err != nil || fetch.Value(key{}) != 1 {
					t.Errorf("the context of nobody: %v, %v", fetch, err)
				}
			}
			time.Sleep(10 * s) // the client gives up meanwhile
			none()
			return "done", nil
		}))
		time.Sleep(5 * s)
		ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, 1), 5*s, errGone)
		defer cancel()
		if _, err := adapter.Serve(ctx, tasks, nil, legacy, "tasks/result", json.RawMessage(params(r.ID))); err != errGone {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
	})
}

// SPEC 7.4: nothing is sent after a handle of the extension or a continuation, and no handle while
// something is being sent, within limits; to a client before, progress goes on until the end.
func TestNotify(t *testing.T) {
	for _, tc := range []struct {
		name   string
		call   adapter.Call
		takes  time.Duration // to send the notification that is due right before the handle
		handle time.Duration
		sent   int // of 20, one every second
	}{
		{"extension", adapter.Call{Caller: declared, Soft: 9*s + 1}, 50 * time.Millisecond, 9*s + 50*time.Millisecond, 10},
		{"extension, that hangs", adapter.Call{Caller: declared, Soft: 9*s + 1}, 500 * time.Millisecond, 9*s + 1 + 100*time.Millisecond, 10},
		{"continuation", adapter.Call{Caller: host, Continuation: &adapter.Continuation{After: 9*s + s/2}}, 0, 9*s + s/2, 10},
		{"legacy", adapter.Call{Caller: legacy, Asked: asks, Soft: -1}, 0, 0, 20},
		{"cancelled", adapter.Call{Caller: legacy, Asked: asks, Soft: -5}, 0, 0, 10},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			start := time.Now()
			var sent atomic.Int32
			r := begin(t, t.Context(), tasks, tc.call, tool(timeout.Config{Grace: time.Hour}, func(ctx context.Context) (string, error) {
				run := adapter.TaskOf(ctx, nil)
				for i := range 20 {
					if err := run.Notify(func(string, task.Form) error {
						sent.Add(1)
						if i == 9 {
							time.Sleep(tc.takes)
						}
						return errGone
					}); err != errGone && err != nil {
						t.Error(err)
					}
					time.Sleep(time.Until(start.Add(time.Duration(i+1) * s)))
				}
				return "", nil
			}))
			if time.Since(start) != tc.handle {
				t.Errorf("the handle after %v", time.Since(start))
			}
			if tc.name == "cancelled" {
				time.Sleep(9*s + s/2)
				mustServe(t, tasks, legacy, "tasks/cancel", r.ID)
			}
			time.Sleep(time.Minute)
			if n := int(sent.Load()); n != tc.sent {
				t.Errorf("%d sent, want %d", n, tc.sent)
			}
		})
	}
}

// A nil run is that of a plain call.
func TestNilRun(t *testing.T) {
	var r *adapter.Task
	ctx, cancel := context.WithCancel(t.Context())
	plain := func(id string, form task.Form) error {
		if id != "" || form != task.Plain {
			t.Error("it is more than that")
		}
		return errGone
	}
	cancel()
	err := r.Ask(ctx, func(id string, form task.Form, _ func() (context.Context, error)) error { return plain(id, form) })
	if err != errGone || r.Notify(plain) != errGone {
		t.Error(err)
	}
}

// SPEC 7.9, 11.4: after the handle no client waits for the answer to the call, and a tool that asks has
// the longer limit, although nothing is sent.
func TestFollowedWait(t *testing.T) {
	for _, tc := range []struct {
		name string
		soft time.Duration
		want time.Duration
	}{
		{"before the handle", time.Hour, 30 * time.Second},
		{"after it", s, 120 * time.Second},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			took := make(chan time.Duration, 1)
			run := tool(timeout.Config{}, func(ctx context.Context) (string, error) {
				time.Sleep(2 * s)
				begun := time.Now()
				_, _ = adapter.Await(ctx, nil, "elicitation/create", "rm", "", progress.Wait{}, func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, nil
				})
				took <- time.Since(begun)
				return "", nil
			})
			_, _, err := do(t.Context(), tasks, adapter.Call{Tool: "delete", Caller: declared, Soft: tc.soft}, run, encode)
			if got := <-took; err != nil || got != tc.want {
				t.Errorf("%v, %v, want %v", err, got, tc.want)
			}
		})
	}
}
