package callsites_test

import (
	"context"
	"encoding/json"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A client that knows tasks, and a call of it that becomes one at once.
var (
	legacy = adapter.Caller{Version: string(task.Legacy), Session: "s"}
	asTask = adapter.Call{Tool: "t", Caller: legacy, Asked: json.RawMessage(`{}`), Soft: time.Second}
)

// repeat makes a call that has an idempotency key.
func repeat(content any, call func() (int, error)) (int, error) {
	s := adapter.NewServer(&adapter.Options{Idempotency: true}, false)
	return adapter.Repeat(context.Background(), s, map[string]any{request.IdempotencyKey: "k"}, func() adapter.Caller { return legacy }, content, call)
}

// taskOf runs a call as a task to its end, as far as it gets there, and shuts down within a second.
func taskOf(c adapter.Call, run func(context.Context) error, encode func() task.Answer, tasks *task.Tasks) {
	var record *task.Record
	_, _ = adapter.Do(context.Background(), tasks, c, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (int, error) {
		return 0, run(ctx)
	}, func(int, error) task.Answer { return encode() }, func(r *task.Record, _ map[string]any) (int, error) { record = r; return 0, nil })
	if record != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, _ = adapter.Serve(ctx, tasks, nil, legacy, "tasks/result", json.RawMessage(`{"taskId":"`+record.ID+`"}`))
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = tasks.Shutdown(ctx)
}

func done() task.Answer { return task.Answer{Result: json.RawMessage(`{"content":[]}`)} }

// uncomparable is a session that a map and == panic with.
type uncomparable struct{ _ []int }

const (
	sessions = "it is compared, which runs no code; TestUncomparableSessions"
	causes   = "it is the cause of contexts as it is"
)

// SPEC 3.24: a session that Go cannot compare, or that equals nothing, panics nowhere and locks nobody out.
func TestUncomparableSessions(t *testing.T) {
	for _, session := range []any{uncomparable{}, [1]any{uncomparable{}}, math.NaN(), func() {}} {
		synctest.Test(t, func(t *testing.T) {
			var calls adapter.Sessions
			limiter := request.New(&request.Options{Limits: &request.Limits{Timeout: time.Second, ResetOnProgress: true}})
			for _, session := range []any{session, "a"} {
				ran := make(chan struct{})
				limiter.Handlers(0, 0)(session, func() { close(ran) })
				<-ran
				_, release := calls.Join(t.Context(), session, nil)
				calls.Abort(session, nil, nil)
				release()
				_, err := request.Do(t.Context(), limiter, request.Call{Session: session, Method: "m", Token: 1}, func(_ context.Context, token string) (int, error) {
					limiter.Progress(session, token)
					return 0, nil
				})
				if err != nil {
					t.Error(err)
				}
				call := toolcall.Call{Session: session}
				_, err = toolcall.Do(t.Context(), nil, call, func(ctx context.Context) (int, error) {
					adapter.TaskOf(ctx, session)
					return toolcall.Do(ctx, nil, call, func(context.Context) (int, error) { return 0, nil })
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func init() {
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Second)
	}
	add(Table{
		"context/request.Limiter.Handlers": {Within: 2 * time.Second, Do: func(s *Site) {
			add := request.New(nil).Handlers(time.Second, 0)
			add("a", func() { s.Hit(nil, func() { add("b", func() {}) }) })
			ran := make(chan bool, 1)
			add("b", func() { ran <- true })
			if !<-ran {
				s.Error("the handler of another session did not run")
			}
		}},
		"adapter.Server.Call(from)":         {Never: "only adapters give one, which asks for the Principal"},
		"adapter.Sessions.Join(session)":    {Never: sessions},
		"adapter.Sessions.Join(request)":    {Never: "it is a string or a number"},
		"adapter.Sessions.Abort(request)":   {Never: "it is a string or a number"},
		"adapter.Sessions.Abort(session)":   {Never: sessions},
		"adapter.Sessions.Abort(cause)":     {Never: causes},
		"adapter.TaskOf(session)":           {Never: sessions},
		"adapter.Await(session)":            {Never: sessions},
		"request.Call.Session":              {Never: sessions},
		"request.Limiter.Progress(session)": {Never: sessions},
		"request.Limiter.Progress(token)":   {Never: "only a string is looked at"},
		"request.Call.Token":                {Never: "only types without methods of a program's become JSON"},
		"toolcall.Call.Session":             {Never: sessions},
		"adapter.Repeat(from)":              {Never: "only adapters give one, which asks for the Principal"},
		"adapter.Do(handle)":                {Never: "only adapters give one, which makes a result of data"},
		"adapter.Task.Ask(send)": {Waits: "waits for send", Panics: true, Do: func(s *Site) {
			var t *adapter.Task
			_ = t.Ask(context.Background(), func(string, task.Form, func() (context.Context, error)) error { s.Hit(nil); return nil })
		}},
		"adapter.Task.Notify(send)": {Waits: "waits for send", Panics: true, Do: func(s *Site) {
			var t *adapter.Task
			_ = t.Notify(func(string, task.Form) error { s.Hit(nil); return nil })
		}},
		"adapter.Do(run)": {Waits: "has to end with its context", Panics: true, Do: func(s *Site) {
			taskOf(adapter.Call{Tool: "t", Caller: legacy}, func(ctx context.Context) error { s.Hit(ctx); return nil }, done, new(task.Tasks))
		}},
		"adapter.Do(run)/task": {Within: time.Minute + time.Second, Do: func(s *Site) {
			taskOf(asTask, func(ctx context.Context) error { s.Hit(ctx); return nil }, done, new(task.Tasks))
		}},
		"adapter.Options.Logger": {Within: told, Do: func(s *Site) {
			o := &adapter.Options{Logger: logger(s), Limits: &timeout.Config{Idle: idle, Grace: grace}}
			calls, _ := adapter.NewServer(o, false).Settings("")
			_, _ = toolcall.Do(context.Background(), calls, toolcall.Call{}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil })
		}},
		"toolcall.Settings.Logger": {Within: told, Do: func(s *Site) {
			o := &toolcall.Settings{Logger: logger(s), Limits: &timeout.Config{Idle: idle, Grace: grace}}
			_, _ = toolcall.Do(context.Background(), o, toolcall.Call{}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil })
		}},
		"toolcall.Settings.Logger/ignored": {Within: told, Do: func(s *Site) {
			call := toolcall.Call{Meta: map[string]any{policy.BudgetKey: -1}}
			_, _ = toolcall.Do(context.Background(), &toolcall.Settings{Logger: logger(s)}, call, func(context.Context) (int, error) { return 0, nil })
		}},
		"adapter.Options.Principal": {Within: 5 * time.Second, Do: func(s *Site) {
			o := &adapter.Options{Principal: func(ctx context.Context) string { s.Hit(ctx); return "" }, Idempotency: true}
			_ = adapter.NewServer(o, false).Principal(context.Background())
		}},
		"adapter.Do(encode)": {Within: 10 * time.Second, Do: func(s *Site) {
			taskOf(asTask, func(context.Context) error { return nil }, func() task.Answer { s.Hit(nil); return done() }, new(task.Tasks))
		}},
		"adapter.Repeat(call)": {Waits: "Repeat waits for call", Panics: true, Do: func(s *Site) {
			_, _ = repeat(1, func() (int, error) { s.Hit(nil); return 0, nil })
		}},
		"adapter.Await(ask)": {Within: 2 * time.Second, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, idle)
				defer cancel()
				_, err := adapter.Await(ctx, nil, "elicitation/create", "really?", "", progress.Wait{}, func(ctx context.Context) (int, error) { s.Hit(ctx); return 0, nil })
				return err
			})
		}},
		"task.Store.Create": {Within: time.Minute + 12*time.Second, Do: storeRow("Create")},
		"task.Store.Get":    {Within: time.Minute + 12*time.Second, Do: storeRow("Get")},
		"task.Store.Update": {Within: time.Minute + 12*time.Second, Do: storeRow("Update")},
		"task.Store.Wait":   {Within: time.Minute + 12*time.Second, Do: storeRow("Wait")},
		"task.Store.List": {Within: 2 * time.Second, Do: func(s *Site) {
			ctx, cancel := soon()
			defer cancel()
			tasks := &task.Tasks{Store: &store{Site: s, Store: task.NewMemory(0, 0), at: "List"}}
			_, _ = adapter.Serve(ctx, tasks, nil, legacy, "tasks/list", nil)
		}},
	})
}

// storeRow runs a task whose store attacks in one of its methods, once; the slot of the task must not stay taken.
func storeRow(at string) func(*Site) {
	return func(s *Site) {
		taskOf(asTask, func(context.Context) error { return nil }, done, &task.Tasks{Store: &store{Site: s, Store: task.NewMemory(0, 0), at: at}, MaxRunning: 1})
		time.Sleep(10 * time.Second) // what follows the record may be about to try again
	}
}

// A store attacks in one of its methods, the first time.
type store struct {
	*Site
	task.Store
	at  string
	hit atomic.Bool
}

func (m *store) attack(at string) {
	if at == m.at && !m.hit.Swap(true) {
		m.Hit(nil)
	}
}

func (m *store) Create(ctx context.Context, r task.Record) (task.Record, error) {
	m.attack("Create")
	return m.Store.Create(ctx, r)
}

func (m *store) Get(ctx context.Context, owner, id string) (task.Record, error) {
	m.attack("Get")
	return m.Store.Get(ctx, owner, id)
}

func (m *store) Update(ctx context.Context, r task.Record) (task.Record, error) {
	m.attack("Update")
	return m.Store.Update(ctx, r)
}

func (m *store) List(ctx context.Context, owner, cursor string, limit int) ([]task.Record, string, error) {
	m.attack("List")
	return m.Store.List(ctx, owner, cursor, limit)
}

func (m *store) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	m.attack("Wait")
	return m.Store.Wait(ctx, owner, id, after)
}
