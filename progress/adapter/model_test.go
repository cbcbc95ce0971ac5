package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 11.1, 11.2, 11.5, 11.7: random calls, clients, cancels and ends with a store that works, against what must hold of each at its instant: see
// modelCall.
func TestModel(t *testing.T) { eachSeed(t, model) }

type world struct {
	tasks     *task.Tasks
	c         *adapter.Continuation
	retention time.Duration
	most      int
	running   atomic.Int32 // with a handle
	left      sync.WaitGroup
}

func model(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		c:         &adapter.Continuation{After: time.Duration(1+rng.IntN(5)) * s},
		retention: time.Duration(1+rng.IntN(60)) * s,
		most:      1 + rng.IntN(8),
	}
	if rng.IntN(3) == 0 {
		w.most = 100 // of at most 30 calls: no one stays plain for want of room
	}
	w.tasks = task.New(task.WithMaxRunning(w.most), task.WithRetention(w.retention), task.WithPoll(time.Duration(1+rng.IntN(3))*s))
	for range 1 + rng.IntN(30) {
		c := newModelCall(w, rng)
		w.left.Go(func() {
			time.Sleep(c.begins)
			c.run(t)
		})
	}
	w.left.Wait()
	if err := w.tasks.Close(); err != nil {
		t.Error(err)
	}
	if n := w.running.Load(); n != 0 {
		t.Errorf("%d are running at the end", n)
	}
	time.Sleep(time.Minute) // for tools that were abandoned
}

// A modelCall is one call, and all that happens to it. Every instant has a nanosecond of its own,
// so that nothing falls due together: that is TestSoftLimit's.
type modelCall struct {
	*world
	rng    *rand.Rand
	call   adapter.Call
	begins time.Duration

	takes  time.Duration // the tool, if nothing stops it
	total  time.Duration // 0: none
	deaf   bool          // to its context
	fails  error
	gone   time.Duration // the client, after the start; 0: never
	cancel time.Duration // after the start
}

const modelGrace = 2*s + 77

func newModelCall(w *world, rng *rand.Rand) *modelCall {
	at := func(most int, odd time.Duration) time.Duration {
		return time.Duration(rng.IntN(most))*100*time.Millisecond + odd*1000 + time.Duration(rng.IntN(900))
	}
	maybe := func(n int) bool { return rng.IntN(n) == 0 }
	c := &modelCall{world: w, rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), begins: at(200, 0), takes: at(150, 1)}
	principal := string(rune('a' + rng.IntN(3)))
	c.call = adapter.Call{Tool: "build", Asked: askedIf(maybe(2)), Soft: []time.Duration{0, -1, at(80, 2), at(80, 2), at(80, 2)}[rng.IntN(5)]}
	c.call.Caller = []adapter.Caller{
		{Version: "2025-06-18", Session: principal},
		{Version: "2025-11-25", Session: principal},
		{Version: "2026-07-28", Principal: principal},
		{Version: "2026-07-28", Principal: principal, Declared: true},
	}[rng.IntN(4)]
	if maybe(2) {
		c.call.Continuation = w.c
	}
	if maybe(3) {
		c.total = at(100, 3) + s
	}
	c.deaf = maybe(5)
	switch rng.IntN(4) {
	case 0:
		c.fails = errors.New("no such file")
	case 1:
		c.fails = &task.Error{Code: -32000, Message: "broken"}
	}
	if maybe(3) {
		c.gone = at(100, 4)
	}
	if maybe(3) {
		c.cancel = at(150, 5)
	}
	return c
}

func (c *modelCall) run(t *testing.T) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if c.gone > 0 {
		time.AfterFunc(c.gone, func() { cancel(errGone) })
	}
	var calls, handed atomic.Int32
	ended := make(chan time.Duration, 1)
	limits := timeout.Config{Total: c.total, Grace: modelGrace}
	value, record, err := adapter.Do(ctx, c.tasks, c.call, func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		calls.Add(1)
		v, err := tool(limits, func(ctx context.Context) (string, error) {
			progress.Report(ctx, progress.Update{Progress: 1, Message: "working"})
			if c.deaf {
				time.Sleep(c.takes)
			} else if v, err := lasting(c.takes)(ctx); err != nil {
				return v, err
			}
			return "done", c.fails
		})(ctx, run, nil)
		if handed.Load() > 0 {
			c.running.Add(-1)
		}
		ended <- time.Since(start)
		return v, err
	}, encode)
	took := time.Since(start)

	// A refused call has not begun.
	form, due := c.due()
	var refused *task.Error
	if errors.As(err, &refused); refused != nil && refused != c.fails {
		if form != "refused" || calls.Load() != 0 || record != nil {
			t.Errorf("%s: refused: %v", c, err)
		}
		return
	}
	natural := c.takes
	if c.total > 0 && c.total < natural {
		natural = c.total
		if c.deaf {
			natural = min(c.takes, c.total+modelGrace)
		}
	}
	if record == nil {
		// The result: in its own time, or when the client has gone.
		want := natural
		if c.gone > 0 && c.gone < natural && !(c.total > 0 && c.total < c.gone) {
			if want = c.gone; c.deaf {
				want = min(c.takes, c.gone+modelGrace)
			}
		}
		if took != want || calls.Load() != 1 {
			t.Errorf("%s: a result after %v, want %v; %d calls", c, took, want, calls.Load())
		}
		if form != task.Plain && due < took && (c.gone == 0 || due < c.gone) && c.most == 100 {
			t.Errorf("%s: no handle", c)
		}
		return
	}
	// The handle: in the form that the client can take, and at the instant when it is due.
	if handed.Add(1); record.Form != form || took != due || value != "" || err != nil {
		t.Errorf("%s: %s after %v, want %s after %v: %q, %v", c, record.Form, took, form, due, value, err)
	}
	if n := c.running.Add(1); int(n) > c.most {
		t.Errorf("%s: %d running of %d", c, n, c.most)
	}
	c.follow(t, start, record, natural)
	if end := <-ended; calls.Load() != 1 || end > natural && c.cancel == 0 {
		t.Errorf("%s: the tool has ended after %v, want %v; %d calls", c, end, natural, calls.Load())
	}
}

// due returns the handle that the client can take, and when.
func (c *modelCall) due() (form task.Form, after time.Duration) {
	k := &c.call
	switch {
	case k.Caller.Version == "2025-11-25" && k.Asked != nil && k.Soft == 0:
		return "refused", 0
	case k.Caller.Version == "2025-11-25" && k.Asked != nil:
		return task.Legacy, 0
	case k.Caller.Declared && k.Soft != 0:
		return task.Extension, max(k.Soft, 0)
	case k.Continuation != nil && k.Soft > 0:
		return task.Continued, min(k.Soft, k.Continuation.After)
	case k.Continuation != nil:
		return task.Continued, k.Continuation.After
	}
	return task.Plain, 0
}

// follow asks for the task again and again, until it is unknown.
func (c *modelCall) follow(t *testing.T, start time.Time, record *task.Record, natural time.Duration) {
	if record.Form == task.Continued {
		c.wait(t, start, record, natural)
		return
	}
	client := c.call.Caller
	cancelled := time.Duration(-1)
	var final map[string]any
	var finalAt time.Duration
	for {
		now := time.Since(start)
		if c.cancel > 0 && now >= c.cancel && cancelled < 0 {
			cancelled = now
			_, err := serve(t, c.tasks, client, "tasks/cancel", params(record.ID))
			gone := now >= natural+c.retention
			if late := now > natural; err != nil && !gone && (!late || client.Declared) {
				t.Errorf("%s: tasks/cancel at %v: %v", c, now, err)
			}
		}
		got, err := serve(t, c.tasks, client, "tasks/get", params(record.ID))
		switch {
		case final != nil && now >= finalAt+c.retention:
			if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != adapter.CodeInvalidParams {
				t.Errorf("%s: it does not expire: %v, %v", c, got, err)
			}
			return
		case err != nil:
			end := natural
			if cancelled >= 0 {
				end = min(end, cancelled)
			}
			if now < end+c.retention { // else it has come and gone between two polls
				t.Errorf("%s: at %v: %v", c, now, err)
			}
			return
		case final != nil:
			if diff := cmp.Diff(final, got); diff != "" {
				t.Errorf("%s: what was final has changed: %s", c, diff)
			}
		case got["status"] != "working":
			final = got
			if finalAt = natural; cancelled >= 0 && cancelled < natural {
				finalAt = cancelled
			}
			if want := c.status(cancelled >= 0 && cancelled < natural); got["status"] != want || now < finalAt {
				t.Errorf("%s: at %v: %v, want %s at %v", c, now, got["status"], want, finalAt)
			}
		case now > natural:
			t.Errorf("%s: at %v: still %v, want the end at %v", c, now, got, natural)
			return
		}
		next := now + time.Duration(1+c.rng.IntN(30))*100*time.Millisecond
		if c.cancel > now {
			next = min(next, c.cancel)
		}
		time.Sleep(next - now)
		synctestSettle()
	}
}

// synctestSettle lets what falls due now be done. (synctest.Wait can have one caller at a time.)
func synctestSettle() { time.Sleep(time.Nanosecond) }

// status is what the task ends as.
func (c *modelCall) status(cancelled bool) string {
	var protocol *task.Error
	stopped := c.total > 0 && c.total < c.takes
	failed := errors.As(c.fails, &protocol)
	switch {
	case cancelled:
		return "cancelled"
	case failed && (!stopped || c.deaf && c.takes <= c.total+modelGrace), // it has returned its error, late or not
		(c.fails != nil || stopped) && c.call.Caller.Version == "2025-11-25":
		return "failed"
	}
	return "completed"
}

func (c *modelCall) wait(t *testing.T, start time.Time, record *task.Record, natural time.Duration) {
	for {
		asked := time.Since(start)
		fields, err := c.c.Wait(t.Context(), c.tasks, c.call.Caller, json.RawMessage(
			fmt.Sprintf(`{"id":%q,"cancel":%v}`, record.ID, c.cancel > 0 && asked > c.cancel)), nil)
		now := time.Since(start)
		if still := err == nil && strings.HasPrefix(said(fields), "Still running after "); still != (now < natural) && (c.cancel == 0 || asked < c.cancel) || now-asked > c.c.After {
			t.Errorf("%s: asked at %v, at %v: %v, %v, want the end at %v", c, asked, now, fields, err, natural)
			return
		} else if !still {
			return
		}
	}
}

func (c *modelCall) String() string {
	return fmt.Sprintf("%+v takes %v, total %v, deaf %v, fails %v, gone %v, cancel %v", c.call, c.takes, c.total, c.deaf, c.fails, c.gone, c.cancel)
}
