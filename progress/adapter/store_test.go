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

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errOutage = errors.New("no connection")

// A faulty store is one that can be slow, away or deaf.
type faulty struct {
	task.Store
	away  atomic.Bool
	deaf  atomic.Bool   // to what it is asked while it is
	slow  time.Duration // to create
	tries atomic.Int32  // while it was away
}

func (f *faulty) Create(ctx context.Context, r task.Record) (task.Record, error) {
	if f.away.Load() {
		return task.Record{}, errOutage
	}
	select {
	case <-time.After(f.slow):
		return f.Store.Create(ctx, r)
	case <-ctx.Done():
		return task.Record{}, ctx.Err()
	}
}

func (f *faulty) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if f.away.Load() {
		f.tries.Add(1)
		return task.Record{}, errOutage
	}
	if f.deaf.Load() {
		<-ctx.Done()
		return task.Record{}, ctx.Err()
	}
	return f.Store.Get(ctx, owner, id)
}

func (f *faulty) Update(ctx context.Context, r task.Record) (task.Record, error) {
	if f.away.Load() {
		return task.Record{}, errOutage
	}
	return f.Store.Update(ctx, r)
}

func (f *faulty) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	if f.away.Load() {
		f.tries.Add(1)
		return task.Record{}, errOutage
	}
	return f.Store.Wait(ctx, owner, id, after)
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
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{Store: new(task.Memory), slow: tc.slow}
				f.away.Store(tc.away)
				tasks := task.New(task.WithStore(f), task.WithMaxRunning(1))
				start := time.Now()
				value, record, err := adapter.Do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: tc.soft}, tool(timeout.Default(), lasting(13*s)), encode)
				if (record != nil) != tc.asTask || !tc.asTask && value != "done" || err != nil || time.Since(start) != tc.after {
					t.Errorf("%q, %v, %v after %v", value, record, err, time.Since(start))
				}
				time.Sleep(15 * s)
				if record != nil {
					if got, err := serve(t, tasks, declared, "tasks/get", params(record.ID)); err != nil || got["status"] != "completed" {
						t.Errorf("%v, %v", got, err)
					}
				}
				if left, _, err := f.Store.List(t.Context(), "task/principal:ann", "", 10); err != nil || len(left) > 1 || len(left) == 1 && !left[0].Status.Final() {
					t.Errorf("left in the store: %+v, %v", left, err)
				}
				synctest.Wait()
				f.slow = 0
				f.away.Store(false)
				begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s))) // the permit is back
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// SPEC 7.4, 11.1: while the store is away, a client that leaves aborts the call at once, as it would
// without tasks, and gets its progress until then.
func TestDisconnectDuringTheHandle(t *testing.T) {
	for _, slow := range []time.Duration{3 * s, time.Minute} { // the store answers after all, or never
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: new(task.Memory), slow: slow}
			tasks := task.New(task.WithStore(f))
			ctx, cancel := context.WithTimeout(t.Context(), 12*s)
			defer cancel()
			start, told := time.Now(), 0
			value, record, err := adapter.Do(ctx, tasks, adapter.Call{Tool: "build", Caller: declared, Soft: 10 * s},
				tool(timeout.Default(), func(ctx context.Context) (string, error) {
					time.Sleep(11 * s)
					_ = adapter.TaskOf(ctx, nil).Notify(func() error { told++; return nil })
					return lasting(time.Minute)(ctx)
				}), encode)
			if value != "half" || record != nil || timeout.ExitCode(err) == 0 || time.Since(start) != 12*s || told != 1 {
				t.Errorf("%q, %v, %v after %v, told %d times", value, record, err, time.Since(start), told)
			}
			time.Sleep(5 * s)
			if left, _, err := f.Store.List(t.Context(), "task/principal:ann", "", 10); err != nil || len(left) == 1 && !left[0].Status.Final() {
				t.Errorf("left in the store: %+v, %v", left, err)
			}
			if err := tasks.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An outage that is longer than the retention leaves no task that is working for ever.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: new(task.Memory)}
		tasks := task.New(task.WithStore(f), task.WithRetention(time.Minute))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(10*s)))
		time.Sleep(5 * s)
		f.away.Store(true)
		time.Sleep(time.Hour)
		f.away.Store(false)
		time.Sleep(6 * s)
		got, err := serve(t, tasks, declared, "tasks/get", params(r.ID))
		if err != nil || got["status"] != "completed" || got["result"] == nil {
			t.Errorf("%v, %v", got, err)
		}
		if n := f.tries.Load(); n > 4000 {
			t.Errorf("%d attempts in an hour", n)
		}
		time.Sleep(54*s - 1) // from the end of the outage on it is kept for as long as ever
		if _, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * s)
		if _, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err == nil {
			t.Error("it does not expire")
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}

// SPEC 11.7: storing is tried again until a shutdown has given up, and no longer. The bubble does not
// end before its goroutines.
func TestShutdownWithoutTheStore(t *testing.T) {
	for _, end := range []string{"result", "question"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{Store: new(task.Memory)}
				tasks := task.New(task.WithStore(f))
				call := adapter.Call{Tool: "build", Caller: declared, Soft: -1}
				var err error
				if end == "result" {
					_, _, err = adapter.Do(t.Context(), tasks, call, tool(timeout.Default(), lasting(10*s)), encode)
				} else {
					_, _, err = adapter.Do(t.Context(), tasks, call, asking, encodeAsking)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(s)
				f.away.Store(true)
				time.Sleep(time.Minute)
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*s)
				defer cancel()
				if err := tasks.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*s {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				tries := f.tries.Load()
				time.Sleep(time.Hour)
				if n := f.tries.Load() - tries; n > 2 {
					t.Errorf("%d attempts after the shutdown", n)
				}
			})
		})
	}
}

// A Shutdown that does not wait at all leaves the outcomes one attempt.
func TestShutdownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := task.New()
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
		if got, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err != nil || got["status"] != "completed" {
			t.Errorf("%v, %v", got, err)
		}
		time.Sleep(time.Hour)
	})
}

// A picky store refuses some updates.
type picky struct {
	task.Store
	refuse func(task.Record) error
}

func (p *picky) Update(ctx context.Context, r task.Record) (task.Record, error) {
	if err := p.refuse(r); err != nil {
		return task.Record{}, err
	}
	return p.Store.Update(ctx, r)
}

// A task ends whatever the store makes of its answer: when the retention has passed, without it; and
// where there is no room for the end either, as soon as there is, with the answer if it fits.
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
		}, 10*time.Minute + 5*s, "the result could not be stored"},
		{"no room for a while", func(r task.Record, after time.Duration) error {
			if r.Status.Final() && after < 20*time.Minute {
				return task.ErrTooLarge
			}
			return nil
		}, 20*time.Minute + 5*s, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				store := &picky{new(task.Memory), func(r task.Record) error { return tc.refuse(r, time.Since(start)) }}
				tasks := task.New(task.WithStore(store))
				r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s)))
				time.Sleep(tc.after - 10*s)
				if got, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err != nil || got["status"] != "working" {
					t.Errorf("before: %v, %v", got, err)
				}
				time.Sleep(10 * s)
				got, err := serve(t, tasks, declared, "tasks/get", params(r.ID))
				e, _ := got["error"].(map[string]any)
				if failed := got["status"] == "failed"; err != nil || failed != (tc.want != "") || failed && e["message"] != tc.want || !failed && got["result"] == nil {
					t.Errorf("%v, %v", got, err)
				}
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A task whose record is gone stops: nobody could fetch its result.
func TestRecordGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		tasks := task.New(task.WithStore(&forgetful{new(task.Memory), &gone}))
		stopped := make(chan error, 1)
		begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return "", nil
		}))
		time.Sleep(s)
		gone.Store(true)
		start := time.Now()
		if err := <-stopped; !errors.Is(err, task.ErrLost) || errors.Is(err, task.ErrCancelled) || time.Since(start) < 500*time.Millisecond || time.Since(start) > 10*s {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A task that a replicated store does not know yet is not gone.
func TestRecordNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		tasks := task.New(task.WithStore(&forgetful{new(task.Memory), &gone}))
		gone.Store(true)
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(100*time.Millisecond)))
		time.Sleep(300 * time.Millisecond)
		gone.Store(false)
		time.Sleep(s)
		got, err := serve(t, tasks, declared, "tasks/get", params(r.ID))
		if result, _ := got["result"].(map[string]any); err != nil || cmp.Diff(wire(t, text("done"))["content"], result["content"]) != "" {
			t.Errorf("%v, %v", got, err)
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * s) // for the wait to look
	})
}

// A forgetful store is one whose records somebody removes. Its waits look every second.
type forgetful struct {
	task.Store
	gone *atomic.Bool
}

func (f *forgetful) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if f.gone.Load() {
		return task.Record{}, task.ErrUnknown
	}
	return f.Store.Get(ctx, owner, id)
}

func (f *forgetful) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	for {
		r, err := f.Get(ctx, owner, id)
		if err != nil || r.Revision != after {
			return r, err
		}
		select {
		case <-time.After(s):
		case <-ctx.Done():
			return task.Record{}, ctx.Err()
		}
	}
}

// SPEC 11.7: the memory of tasks that nobody fetches is bounded; running tasks are not touched, and a
// result that is larger than all the room there is says so.
func TestMemoryBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &task.Memory{MaxTasks: 20, MaxBytes: 100 << 10}
		tasks := task.New(task.WithStore(m), task.WithMaxRunning(5))
		long := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Config{}, lasting(20*time.Minute)))
		var ids []string
		for i := range 40 {
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(context.Context) (string, error) {
				return strings.Repeat("x", 10<<10), nil
			}))
			ids = append(ids, r.ID)
			time.Sleep(s)
			kept, bytes := 0, 0
			for _, id := range ids {
				if got, err := adapter.Serve(t.Context(), tasks, adapter.Request{Method: "tasks/get", Params: json.RawMessage(params(id)), Caller: declared}); err == nil {
					raw, _ := json.Marshal(got)
					kept++
					bytes += len(raw)
				}
			}
			if want := min(i+1, 8); kept != want || int64(bytes) > m.MaxBytes {
				t.Fatalf("%d tasks are kept of %d, %d bytes", kept, i+1, bytes)
			}
		}
		if got, err := serve(t, tasks, declared, "tasks/get", params(long.ID)); err != nil || got["status"] != "working" {
			t.Errorf("%v, %v", got, err)
		}
		huge := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), func(ctx context.Context) (string, error) {
			heartbeat.BeatWith(ctx, progress.Update{Message: "file 37"})
			return strings.Repeat("x", 100<<10), nil
		}))
		time.Sleep(s)
		got, err := serve(t, tasks, declared, "tasks/get", params(huge.ID))
		if err != nil || got["status"] != "failed" || !strings.Contains(fmt.Sprint(got["error"]), "too large to be stored; last: file 37") {
			t.Errorf("%v, %v", got, err)
		}
		time.Sleep(time.Hour)
	})
}

// SPEC 11.7: tasks that run are never removed for others.
func TestMemoryFullOfRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := task.New(task.WithStore(&task.Memory{MaxBytes: 5 << 10}))
		call := adapter.Call{Tool: "build", Caller: declared, Soft: -1}
		var ids []string
		for range 4 {
			ids = append(ids, begin(t, t.Context(), tasks, call, tool(timeout.Default(), lasting(10*s))).ID)
		}
		for range 2 {
			value, record, err := adapter.Do(t.Context(), tasks, call, tool(timeout.Default(), lasting(s)), encode)
			if value != "done" || record != nil || err != nil {
				t.Errorf("%q, %v, %v", value, record, err)
			}
		}
		for _, id := range ids {
			if got, err := serve(t, tasks, declared, "tasks/get", params(id)); err != nil || got["status"] != "working" {
				t.Errorf("%v, %v", got, err)
			}
		}
		time.Sleep(10 * s)
	})
}

// A task whose process is gone has failed, and says so in both protocols.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(task.Memory)
		now := time.Now()
		r, err := m.Create(t.Context(), task.Record{ID: "x", Owner: "task/principal:ann", Form: task.Legacy, Status: task.Working, Message: "main.go", Started: now, Created: now, Retention: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * s)
		lost := r.Lost(time.Now())
		if r.Status != task.Working {
			t.Error("the record itself has changed")
		}
		if _, err := m.Update(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		tasks := task.New(task.WithStore(m))
		for _, c := range []adapter.Caller{legacy, declared} {
			if got, err := serve(t, tasks, c, "tasks/get", params("x")); err != nil || got["status"] != "failed" || got["statusMessage"] != "the process that ran the task is gone; last: main.go" {
				t.Errorf("%v, %v", got, err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := serve(t, tasks, legacy, "tasks/get", params("x")); err == nil {
			t.Error("it does not expire")
		}
	})
}

// SPEC 13.3: a tool whose process was declared gone is aborted with that cause; nobody has cancelled
// it.
func TestDeclaredGone(t *testing.T) {
	for _, question := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := new(task.Memory)
			tasks := task.New(task.WithStore(m))
			stopped := make(chan error, 1)
			var r *task.Record
			if question {
				_, record, err := adapter.Do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: -1}, asking, func(v reply, err error) task.Answer {
					if err != nil {
						stopped <- err
					}
					return encodeAsking(v, err)
				})
				if err != nil {
					t.Fatal(err)
				}
				r = record
			} else {
				r = begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
					v, err := tool(timeout.Default(), lasting(time.Minute))(ctx, run, nil)
					stopped <- err
					return v, err
				})
			}
			time.Sleep(s)
			stored, err := m.Get(t.Context(), r.Owner, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Update(t.Context(), stored.Lost(time.Now())); err != nil {
				t.Fatal(err)
			}
			err = <-stopped
			if !errors.Is(err, task.ErrLost) || errors.Is(err, task.ErrCancelled) || !strings.Contains(err.Error(), "declared this process gone") || timeout.ExitCode(err) != timeout.ExitAborted {
				t.Errorf("%v, %d", err, timeout.ExitCode(err))
			}
			if got, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err != nil || got["status"] != "failed" || got["statusMessage"] != "the process that ran the task is gone" {
				t.Errorf("%v, %v", got, err)
			}
			if err := tasks.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// SPEC 12.5: a session that ends while the handle is on its way aborts the call.
func TestEndSessionDuringTheHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: new(task.Memory), slow: 2 * s}
		tasks := task.New(task.WithStore(f))
		ended := make(chan error, 1)
		go adapter.Do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: adapter.Caller{Session: "one"}, Continuation: &adapter.Continuation{After: s}},
			tool(timeout.Default(), func(ctx context.Context) (string, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				ended <- context.Cause(ctx)
				return "", nil
			}), encode)
		time.Sleep(2 * s)
		adapter.EndSession(tasks, "one")
		if got := <-ended; got != toolcall.ErrSessionEnded {
			t.Error(got)
		}
		_ = tasks.Close()
	})
}

// A strict store is one that writes JSON.
type strict struct{ task.Store }

func (s strict) Update(ctx context.Context, r task.Record) (task.Record, error) {
	if _, err := json.Marshal(r); err != nil {
		return task.Record{}, err
	}
	return s.Store.Update(ctx, r)
}

// A value in an answer that cannot become JSON ends the task all the same.
func TestNoJSON(t *testing.T) {
	for name, answer := range map[string]task.Answer{
		"result":     {Result: json.RawMessage(`{"content":`)},
		"error data": {Error: &task.Error{Code: -32000, Message: "ouch", Data: json.RawMessage(`because`)}},
		"question":   {Questions: map[string]json.RawMessage{"q": json.RawMessage(`{`)}},
	} {
		for kind, store := range map[string]task.Store{"memory": new(task.Memory), "strict": strict{new(task.Memory)}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tasks := task.New(task.WithStore(store))
					_, record, err := adapter.Do(t.Context(), tasks, adapter.Call{Tool: "build", Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s)),
						func(_ string, err error) task.Answer {
							if err != nil {
								return encode("", err)
							}
							return answer
						})
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * s)
					fields, err := adapter.Serve(t.Context(), tasks, adapter.Request{Method: "tasks/get", Params: json.RawMessage(params(record.ID)), Caller: declared})
					if err != nil {
						t.Fatal(err)
					}
					raw, err := json.Marshal(fields)
					if err != nil || fields["status"] != task.Failed {
						t.Errorf("%s %v", raw, err)
					}
					time.Sleep(time.Hour)
				})
			})
		}
	}
}

// An unwatched store is one whose Wait has failed since the store was lost to it.
type unwatched struct {
	task.Store
	waits atomic.Int32
}

func (u *unwatched) Wait(context.Context, string, string, uint64) (task.Record, error) {
	u.waits.Add(1)
	return task.Record{}, errOutage
}

// A task that has ended is watched no more, whether or not its end can be read.
func TestNoWatchAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unwatched{Store: new(task.Memory)}
		tasks := task.New(task.WithStore(u))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(10*s)))
		time.Sleep(20 * s)
		if got, err := serve(t, tasks, declared, "tasks/get", params(r.ID)); err != nil || got["status"] != "completed" {
			t.Errorf("%v, %v", got, err)
		}
		before := u.waits.Load()
		time.Sleep(time.Minute)
		if n := u.waits.Load(); before == 0 || n > before {
			t.Errorf("%d waits, then %d", before, n)
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}
