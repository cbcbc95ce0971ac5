package adapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// eachSeed makes runs in bubbles until one fails, which it names.
func eachSeed(t *testing.T, run func(t *testing.T, seed uint64)) {
	for seed := range harness.Seeds(t, 60) {
		synctest.Test(t, func(t *testing.T) { run(t, seed) })
	}
}

// A weather is what a store does for a time.
type weather struct {
	// kind is away: nothing is done; lost: what is done is not told; slow; deaf: no answer until the context ends; dead:
	// nor then.
	kind     string
	from, to time.Time
}

// A stormy store has weather, and rivals who write between a Get and an Update. It watches what becomes of each record.
type stormy struct {
	task.Store
	report func(format string, args ...any)

	mu    sync.Mutex
	rng   *rand.Rand
	sky   []weather
	rival int // of so many updates one
	most  int // so many tasks may run
	all   map[string]task.Record
	asked map[string]time.Time // when a question was stored last
}

func (s *stormy) now() string {
	for _, w := range s.sky {
		if now := time.Now(); !now.Before(w.from) && now.Before(w.to) {
			return w.kind
		}
	}
	return ""
}

// under does what the store is asked for, as the weather lets it.
func (s *stormy) under(ctx context.Context, do func() (task.Record, error)) (task.Record, error) {
	_, limited := ctx.Deadline()
	switch kind := s.now(); {
	case kind == "away":
		return task.Record{}, errOutage
	case kind == "lost":
		_, _ = do()
		return task.Record{}, errOutage
	case kind == "slow":
		s.mu.Lock()
		d := time.Duration(s.rng.IntN(2000)) * time.Millisecond // one that began later may be done first
		s.mu.Unlock()
		time.Sleep(d)
	case kind == "deaf" && limited:
		<-ctx.Done()
		return task.Record{}, ctx.Err()
	case kind == "dead" && limited:
		time.Sleep(5 * time.Minute)
		return task.Record{}, errOutage
	case kind != "": // who waits without end finds that the connection has broken
		time.Sleep(time.Second)
		return task.Record{}, errOutage
	}
	return do()
}

func (s *stormy) Create(ctx context.Context, r task.Record) (task.Record, error) {
	if kind := s.now(); kind == "lost" || kind == "dead" { // a record of which nobody knows would never end
		return task.Record{}, errOutage
	}
	return s.under(ctx, func() (task.Record, error) {
		r, err := s.Store.Create(ctx, r)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all[r.ID] = r
			running := 0
			for _, r := range s.all {
				if !r.Status.Final() {
					running++
				}
			}
			if running > s.most {
				s.report("%d tasks are running of %d", running, s.most)
			}
		}
		return r, err
	})
}

func (s *stormy) Get(ctx context.Context, owner, id string) (task.Record, error) {
	return s.under(ctx, func() (task.Record, error) { return s.Store.Get(ctx, owner, id) })
}

func (s *stormy) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, w := range s.sky { // which breaks the connections of those who wait
		if d := time.Until(w.from); d > 0 {
			defer time.AfterFunc(d, cancel).Stop()
		}
	}
	r, err := s.under(ctx, func() (task.Record, error) { return s.Store.Wait(limited, owner, id, after) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errOutage
	}
	return r, err
}

// Update checks guarantee 3 of package task: a final status never changes, and its result comes once.
func (s *stormy) Update(ctx context.Context, r task.Record) (task.Record, error) {
	return s.under(ctx, func() (task.Record, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.rng.IntN(s.rival) == 0 {
			if other, err := s.Store.Get(ctx, r.Owner, r.ID); err == nil {
				_, _ = s.Store.Update(ctx, other)
			}
		}
		stored, err := s.Store.Update(ctx, r)
		if err != nil {
			return stored, err
		}
		if old := s.all[r.ID]; old.Status.Final() && (r.Status != old.Status || !r.Expires.Equal(old.Expires) || old.Answer != nil && r.Answer != old.Answer || old.Status != task.Cancelled) {
			s.report("a final record has changed: %+v, then %+v", old, r)
		}
		if stored.Status == task.InputRequired {
			s.asked[r.ID] = time.Now()
		}
		s.all[r.ID] = stored
		return stored, err
	})
}

func (s *stormy) last(id string) task.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// A simCall is a call in a storm, and what has been seen of it. Times are since its beginning, 0 is never.
type simCall struct {
	call                 adapter.Call
	retention            time.Duration
	begins, takes, total time.Duration
	gone, cancel         time.Duration
	shutdown             time.Duration
	sessionEnds          time.Duration
	deaf, asks, crowded  bool
	how                  string        // it ends
	person, askTime      time.Duration // when the tool asks somebody by itself, and for how long
	calm                 bool          // nothing disturbs it: all instants are exact

	mu        sync.Mutex
	told      time.Time // of the end of the person's question
	rounds    int
	started   time.Duration
	ended     time.Duration // the last round
	cause     error
	sent      []time.Duration
	record    *task.Record
	answered  time.Duration
	value     reply
	err       error
	accepted  bool          // the cancel
	cancelled time.Duration // when that was
}

const (
	sendTime = 100 * time.Millisecond
	simGrace = 2*s + 77
)

// SPEC 11.1, 11.2, 11.3, 11.4, 11.5, 11.7, 12.2, 12.5, 18.4: TestSimulation makes calls, questions, cancels, disconnects,
// duplicates, ends of sessions and a shutdown of two replicas that share a store with outages. What must hold of each
// call is in check, and in exactly where nothing disturbs it. No two things of a call fall due together; what that changes
// is in TestReturnedBefore.
func TestSimulation(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dice := func(n int) bool { return rng.IntN(n) == 0 }
		at := func(most int) time.Duration {
			return time.Duration(rng.IntN(most))*100*time.Millisecond + time.Duration(1+rng.IntN(99_999_999))
		}
		begun := time.Now()
		most := 1 + rng.IntN(40)
		store := &stormy{Store: task.NewMemory(0, 0), rng: rand.New(rand.NewPCG(seed, 2)), report: t.Errorf, rival: 2 + rng.IntN(6), most: most, all: map[string]task.Record{}, asked: map[string]time.Time{}}
		clear := begun
		calm := dice(2)
		for range rng.IntN(4) {
			w := weather{kind: []string{"away", "lost", "deaf", "dead", "slow"}[rng.IntN(5)], from: begun.Add(at(300))}
			w.to = w.from.Add(at(120))
			if calm {
				continue
			}
			store.sky = append(store.sky, w)
			if w.to.After(clear) {
				clear = w.to
			}
		}
		retention := time.Duration(1+rng.IntN(20)) * time.Minute
		runs := &task.Tasks{Store: store, MaxRunning: most, Retention: retention, Poll: time.Duration(1+rng.IntN(3)) * s}
		asks := &task.Tasks{Store: store}
		if dice(2) {
			asks = runs
		}
		var shutdown, sessionEnds time.Duration
		if dice(4) {
			shutdown = at(300)
			if dice(2) && shutdown > 2*s && !calm { // while handles are on their way
				store.sky = append([]weather{{"slow", begun.Add(shutdown - 2*s), begun.Add(shutdown + s)}}, store.sky...)
			}
		}
		if dice(3) {
			sessionEnds = at(300)
		}
		c := &adapter.Continuation{After: time.Duration(1+rng.IntN(5)) * s}
		server := adapter.NewServer(&adapter.Options{Tasks: runs, Continuation: c, Await: progress.Wait{Limit: 20 * s, ProgressLimit: 20 * s}}, false)
		var all []*simCall
		var left sync.WaitGroup
		for range 1 + rng.IntN(20) {
			k := &simCall{begins: at(250), takes: at([]int{150, 150, 900}[rng.IntN(3)]), deaf: dice(5), how: []string{"done", "error", "protocol", "panic", "goexit"}[rng.IntN(5)], retention: retention}
			k.call, _ = server.Call("build", nil, nil, false, func() adapter.Caller { return adapter.Caller{} })
			k.call.Asked, k.call.Soft, k.call.Continuation = askedIf(dice(2)), []time.Duration{0, -1, at(80), at(80)}[rng.IntN(4)], nil
			k.call.Caller = []adapter.Caller{
				{Version: "2025-06-18", Session: "one"}, {Version: "2025-11-25", Session: "one"}, {Version: "2026-07-28", Session: "one"}, {Version: "2025-06-18"},
				{Version: "2025-11-25", Principal: "ann"}, {Version: "2026-07-28", Declared: true, Principal: "ann"}, {Version: "2026-07-28", Declared: true, Principal: "ann"},
			}[rng.IntN(7)]
			if dice(2) {
				k.call.Continuation = c
			}
			if dice(3) {
				k.total = at(100) + s
			}
			if dice(3) {
				k.call.Within.Left = at(100) + s
			}
			if dice(3) {
				k.gone = at(100)
			}
			if dice(3) {
				k.cancel = at(600)
			}
			if dice(4) {
				k.person, k.askTime, k.total, k.cancel = at(80), at(60), 0, 0 // nothing ends that early
				if _, due := k.due(); !calm && dice(2) {                      // while the handle is on its way
					k.person = due + at(20)
					w := weather{"slow", begun.Add(k.begins + due), begun.Add(k.begins + due + 10*s)}
					if store.sky = append([]weather{w}, store.sky...); w.to.After(clear) {
						clear = w.to
					}
				}
			}
			if k.asks = k.person == 0 && dice(2) && k.call.Caller.Declared && k.call.Soft != 0; k.asks {
				k.how = "done"
			}
			if shutdown > 0 {
				k.shutdown = max(shutdown-k.begins, 1)
			}
			if sessionEnds > 0 && k.call.Caller.Session == "one" {
				k.sessionEnds = max(sessionEnds-k.begins, 1)
			}
			all = append(all, k)
			k.crowded = most < 20
			k.calm = calm && shutdown == 0 && k.sessionEnds == 0 && !k.asks
		}
		for i, k := range all {
			left.Go(func() {
				time.Sleep(k.begins)
				k.run(t, store, runs, asks, rand.New(rand.NewPCG(seed, uint64(i+11))), clear)
			})
		}
		if shutdown > 0 {
			left.Go(func() {
				time.Sleep(shutdown)
				_ = runs.Shutdown(context.Background())
			})
		}
		if sessionEnds > 0 {
			left.Go(func() {
				time.Sleep(sessionEnds)
				adapter.EndSession(runs, "one")
				adapter.EndSession(runs, "") // is no session
			})
		}
		left.Wait()
		time.Sleep(5 * time.Minute)          // for tools whose clients have left
		if err := runs.Close(); err != nil { // all that has run has been stored
			t.Error(err)
		}
		time.Sleep(time.Minute)
		for _, k := range all {
			k.check(t, store, clear.Sub(begun)-k.begins)
		}
		time.Sleep(time.Hour) // guarantee 9: the bubble ends with its last goroutine
	})
}

// tool is the tool that is called.
func (k *simCall) tool(start time.Time) function {
	return func(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (r reply, err error) {
		k.mu.Lock()
		if k.rounds++; k.rounds == 1 {
			k.started = time.Since(start)
		}
		k.mu.Unlock()
		defer func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.ended, k.cause = time.Since(start), context.Cause(ctx)
		}()
		r.text, err = tool(timeout.Config{Total: k.total, Grace: simGrace}, func(ctx context.Context) (string, error) {
			if k.person > 0 {
				go func() {
					_, _ = lasting(k.person - time.Since(start))(ctx)
					var ends time.Time
					_ = run.Ask(ctx, func(string, task.Form, func() (context.Context, error)) error {
						_, _ = lasting(k.person + k.askTime - time.Since(start))(ctx)
						ends = time.Now()
						return nil
					})
					if !ends.IsZero() && time.Since(ends) < 5*s { // for so long it waits for what is being told
						k.mu.Lock()
						defer k.mu.Unlock()
						k.told = time.Now()
					}
				}()
			}
			for begun := time.Now(); time.Since(begun) < k.takes && (k.deaf || ctx.Err() == nil); {
				_ = run.Notify(func(string, task.Form) error {
					k.mu.Lock()
					defer k.mu.Unlock()
					k.sent = append(k.sent, time.Since(start))
					return nil
				})
				progress.Report(ctx, progress.Update{Message: "working"})
				if d := min(700*time.Millisecond, k.takes-time.Since(begun)); k.deaf {
					time.Sleep(d)
				} else {
					_, _ = lasting(d)(ctx)
				}
			}
			if !k.deaf && ctx.Err() != nil {
				return "half", context.Cause(ctx)
			}
			switch k.how {
			case "error":
				return "text", errors.New("no such file")
			case "protocol":
				return "", &task.Error{Code: -32000, Message: "broken"}
			case "panic":
				panic("ouch")
			case "goexit":
				runtime.Goexit()
			}
			if answers != nil {
				return "text" + string(answers["ok"]), nil
			}
			return "text", nil
		})(ctx, run, nil)
		if k.asks && answers == nil && err == nil {
			r = reply{questions: map[string]json.RawMessage{"ok": json.RawMessage(`{}`)}}
		}
		return r, err
	}
}

// run makes the call, and plays the client of what becomes of it.
func (k *simCall) run(t *testing.T, store *stormy, runs, asks *task.Tasks, rng *rand.Rand, clear time.Time) {
	start := time.Now()
	ctx, gone := context.WithCancelCause(t.Context())
	defer gone(nil)
	if k.gone > 0 {
		time.AfterFunc(k.gone, func() { gone(errGone) })
	}
	k.value, k.record, k.err = do(ctx, runs, k.call, k.tool(start), encodeAsking)
	k.answered = time.Since(start)
	if k.record == nil {
		return
	}
	stranger := k.call.Caller
	stranger.Principal, stranger.Session = "bob", "two"
	for time.Since(start) < max(k.cancel, clear.Sub(start))+10*time.Minute-s {
		d := time.Duration(1+rng.IntN(40)) * 100 * time.Millisecond
		if now := time.Since(start); k.cancel > now {
			d = min(d, k.cancel-now)
		}
		time.Sleep(d)
		cancels := k.cancel > 0 && time.Since(start) >= k.cancel && !k.accepted
		next := k.follow
		if k.record.Form == task.Continued {
			next = k.wait
		}
		if next(t, store, asks, stranger, rng, start, clear, cancels) {
			return
		}
	}
}

// waitTool calls the wait tool once, and reports whether that was the end.
func (k *simCall) wait(t *testing.T, _ *stormy, asks *task.Tasks, stranger adapter.Caller, _ *rand.Rand, start, _ time.Time, cancels bool) bool {
	args := fmt.Sprintf(`{"id":%q,"cancel":%v}`, k.record.ID, cancels)
	if fields, err := waitTool(t.Context(), k.call.Continuation, asks, stranger, args, nil); err == nil && fields["isError"] != true {
		t.Errorf("%s: a stranger got %v", k, fields)
	}
	asked := time.Since(start)
	fields, err := waitTool(t.Context(), k.call.Continuation, asks, k.call.Caller, args, nil)
	text := said(fields)
	away := strings.HasPrefix(text, "The store of the calls cannot be reached")
	if cancels && err == nil && !away {
		k.accepted, k.cancelled = true, asked
	}
	still := err == nil && strings.HasPrefix(text, "Still running")
	if took := time.Since(start) - asked; k.calm && (away || took > k.call.Continuation.After || still && took < k.call.Continuation.After) {
		t.Errorf("%s: %q after %v", k, text, took)
	}
	return err != nil || !still && !away
}

// follow does what a client does between two polls, and reports whether the task has ended.
func (k *simCall) follow(t *testing.T, store *stormy, asks *task.Tasks, stranger adapter.Caller, rng *rand.Rand, start, clear time.Time, cancels bool) bool {
	client, id := k.call.Caller, params(k.record.ID)
	if cancels {
		got, err := serve(t, asks, client, "tasks/get", id)
		before, asked := err != nil || task.Status(fmt.Sprint(got["status"])).Final(), time.Now()
		_, err = serve(t, asks, client, "tasks/cancel", id)
		// Where it takes time, the task may have ended meanwhile, which is no error in the extension.
		k.accepted, k.cancelled = err == nil && !before && time.Since(asked) == 0, time.Since(start)
		if err != nil && !before && time.Since(asked) == 0 && asked.After(clear) { // whoever else has written meanwhile
			t.Errorf("%s: tasks/cancel: %v", k, err)
		}
	}
	for _, method := range methods { // guarantee 4
		if got, err := serve(t, asks, stranger, method, id); err == nil && method != "tasks/list" {
			t.Errorf("%s: a stranger got %v of %s", k, got, method)
		}
	}
	asked := time.Since(start)
	got, err := serve(t, asks, client, "tasks/get", id)
	status := task.Status(fmt.Sprint(got["status"]))
	// Before that, the store may not have heard of it. A beat tells it again.
	const heard = 2 * s
	if calm := time.Now().After(clear.Add(10 * s)); err == nil && calm && asked < k.takes && !status.Final() && !k.asks && k.sessionEnds == 0 && k.shutdown == 0 {
		waits := k.person > 0 && asked > max(k.person, k.answered)+heard && asked < k.person+k.askTime
		works := k.person == 0 || asked < k.person || asked > k.person+k.askTime+heard
		if waits && status != task.InputRequired || works && status != task.Working {
			t.Errorf("%s: %s after %v", k, status, asked)
		}
	}
	if questions, _ := got["inputRequests"].(map[string]any); len(questions) > 0 && rng.IntN(3) == 0 {
		for range 1 + rng.IntN(2) { // an answer may come twice
			_, _ = serve(t, asks, client, "tasks/update", `{"taskId":"`+k.record.ID+`","inputResponses":{"1.ok":"yes"}}`)
		}
	}
	if err != nil || !status.Final() {
		return false
	}
	if k.calm { // it stays what it is until it expires
		expires := store.last(k.record.ID).Expires
		time.Sleep(time.Until(expires) - 1)
		if again, err := serve(t, asks, client, "tasks/get", id); err != nil || cmp.Diff(got, again) != "" {
			t.Errorf("%s: right before it expires: %v, %s", k, err, cmp.Diff(got, again))
		}
		time.Sleep(time.Nanosecond)
		if again, err := serve(t, asks, client, "tasks/get", id); err == nil {
			t.Errorf("%s: it does not expire: %v", k, again)
		}
	}
	return true
}

// due returns the handle that the client can take, and when.
func (k *simCall) due() (form task.Form, after time.Duration) {
	c := &k.call
	switch {
	case c.Caller.Version == "2025-11-25" && c.Asked != nil && c.Soft == 0:
		return "refused", 0
	case c.Caller.Version == "2025-11-25" && c.Asked != nil:
		return task.Legacy, 0
	case c.Caller.Declared && c.Soft != 0:
		return task.Extension, k.within(max(c.Soft, 0))
	case c.Continuation != nil && c.Soft > 0:
		return task.Continued, k.within(min(c.Soft, c.Continuation.After))
	case c.Continuation != nil:
		return task.Continued, k.within(c.Continuation.After)
	}
	return task.Plain, 0
}

// within is when the client has to have an answer.
func (k *simCall) within(due time.Duration) time.Duration {
	if left := k.call.Within.Left; left > 0 {
		return min(due, left)
	}
	return due
}

// unheld is when a call is stopped that could have had a handle; 0 is never. One whose handle was due at once is plain
// from the start, unless the store does not say so in time.
func (k *simCall) unheld(form task.Form) time.Duration {
	if left := k.call.Within.Left; left > 0 && form != task.Plain && k.record == nil {
		return left + min(left/5, 10*s)/2
	}
	return 0
}

// exactly has what holds to the nanosecond of a call that nothing disturbs.
func (k *simCall) exactly(store *stormy, form task.Form, due time.Duration, wrong func(string, ...any)) {
	stop := k.total
	if d := k.unheld(form); due > 0 && d > 0 && (stop == 0 || d < stop) {
		stop = d
	}
	for _, d := range []time.Duration{k.gone, k.cancelled} {
		if aborts := d == k.cancelled && k.accepted || d == k.gone && k.record == nil; aborts && d > 0 && (stop == 0 || d < stop) {
			stop = d
		}
	}
	ends, stopped := k.takes, stop > 0 && stop < k.takes
	if stopped {
		if ends = stop; k.deaf {
			ends = min(k.takes, stop+simGrace)
		}
	}
	if k.ended != ends || k.started != 0 {
		wrong("the tool ran from %v to %v, want %v", k.started, k.ended, ends)
	}
	if k.record == nil {
		if form != task.Plain && due < ends && (k.gone == 0 || due < k.gone) && !k.crowded {
			wrong("no handle")
		}
		return
	}
	if k.answered != due {
		wrong("the handle after %v, want %v", k.answered, due)
	}
	final, status := ends, task.Completed
	isError := stopped || k.how == "error" || k.how == "panic" || k.how == "goexit"
	switch {
	case k.accepted && form != task.Continued:
		final, status = k.cancelled, task.Cancelled
	case k.how == "protocol" && (!stopped || k.deaf && k.takes <= stop+simGrace): // it has returned its error, late or not
		status, isError = task.Failed, false
	}
	r := store.last(k.record.ID)
	if at := r.Updated.Sub(k.record.Started); at != final || r.Status != status || status == task.Completed && r.IsError != isError || r.Expires.Sub(r.Updated) != k.retention {
		wrong("%s after %v, kept for %v, isError %v, want %s after %v", r.Status, at, r.Expires.Sub(r.Updated), r.IsError, status, final)
	}
}

// check has what must hold of a call. The sky is clear from a time on.
func (k *simCall) check(t *testing.T, store *stormy, clear time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s", k, fmt.Sprintf(format, args...))
	}
	form, due := k.due()
	if refused := (*task.Error)(nil); form == "refused" {
		if !errors.As(k.err, &refused) || k.rounds != 0 || k.record != nil {
			wrong("not refused: %v, %d rounds", k.err, k.rounds)
		}
		return
	}
	if k.calm {
		k.exactly(store, form, due, wrong)
	}
	// Guarantee 1: a result or a handle, its tool called once in a round, and never late for want of a store.
	if late := k.started; late > s+1 || k.rounds < 1 || k.rounds > 2 || k.rounds == 2 && !k.asks {
		wrong("%d rounds, the first after %v", k.rounds, late)
	}
	asked := k.value.questions != nil && k.err == nil
	if k.record == nil {
		if k.answered != k.ended {
			wrong("answered after %v, and the tool has ended after %v", k.answered, k.ended)
		}
		if k.value.text == "" && k.err == nil && !asked {
			wrong("neither a result nor a handle")
		}
		if k.gone > 0 && !k.deaf && k.ended > max(k.gone, k.started) {
			wrong("the client has gone after %v, and the tool has ended after %v", k.gone, k.ended)
		}
	} else {
		if k.value.text != "" || asked || k.err != nil || k.record.Form != form {
			wrong("a handle in the form %q, want %q, and %v, %v", k.record.Form, form, k.value, k.err)
		}
		if k.answered < due || k.answered > due+5*s+sendTime {
			wrong("the handle after %v, want %v", k.answered, due)
		}
	}
	if k.record == nil && form != task.Plain {
		fits := k.gone > 0 && k.gone <= due || k.answered <= due || k.shutdown > 0 || clear > due || k.crowded
		if !fits {
			wrong("no handle at %v, answered after %v", due, k.answered)
		}
	}
	// Guarantee 5: nothing but this ends the tool.
	if stop := k.cause; stop != nil {
		ok := false
		switch {
		case errors.Is(stop, task.ErrCancelled):
			ok = k.cancel > 0
		case errors.Is(stop, toolcall.ErrShutdown):
			ok = k.shutdown > 0 && k.ended >= k.shutdown && k.record != nil
		case errors.Is(stop, toolcall.ErrSessionEnded):
			ok = k.sessionEnds > 0 && k.ended >= k.sessionEnds && form == task.Continued
		case errors.Is(stop, toolcall.ErrClientTimeout):
			ok = k.unheld(form) > 0 && k.ended >= k.unheld(form)
		case errors.Is(stop, errGone):
			ok = k.gone > 0 && k.record == nil
		}
		if !ok {
			wrong("the tool has ended after %v because of %v", k.ended, stop)
		}
	}
	if d := k.unheld(form); due > 0 && d > 0 && k.ended > max(d, k.started)+simGrace {
		wrong("the tool has ended after %v, and the client waits until %v", k.ended, d)
	}
	if k.total > 0 && k.ended > k.started+k.total+simGrace && k.rounds == 1 {
		wrong("the tool has ended after %v, with a total of %v", k.ended, k.total)
	}
	if k.record == nil { // whatever becomes of the store, the client hears of the call until its end
		if want := int((k.ended - k.started) / (700 * time.Millisecond)); len(k.sent) < want {
			wrong("%d notifications until the answer after %v, want %d", len(k.sent), k.answered, want)
		}
		return
	}
	// Guarantee 8: nothing is sent after such a handle.
	for _, at := range k.sent {
		if form != task.Legacy && at > k.answered {
			wrong("sent after %v, and the handle came after %v", at, k.answered)
		}
	}
	// Guarantee 7: no outage loses a cancel or a result, and every task ends.
	r := store.last(k.record.ID)
	if at := store.asked[k.record.ID]; !k.told.IsZero() && at.After(k.told) {
		wrong("its question is stored at %v, and has ended at %v", at, k.told)
	}
	cancelled := k.accepted && form != task.Continued
	natural := k.ended-k.started >= k.takes || k.total > 0 && k.total < k.takes
	switch {
	case !r.Status.Final():
		wrong("it is %s for ever", r.Status)
	case cancelled && r.Status != task.Cancelled:
		wrong("it was cancelled, and is %s", r.Status)
	case !cancelled && r.Status == task.Cancelled && k.cancel == 0:
		wrong("nobody has cancelled it")
	case r.Status == task.Cancelled && !k.deaf && r.Answer != nil && k.rounds == 1 && !bytes.Contains(r.Answer.Result, []byte("half")) && !natural:
		wrong("cancelled, with %s", r.Answer.Result)
	case r.Status == task.Cancelled && r.Answer == nil && max(k.cancelled, k.ended) > clear && k.ended >= k.cancelled:
		wrong("cancelled after %v, without what the tool has returned after %v", k.cancelled, k.ended)
	case r.Status == task.Completed && r.Answer == nil:
		wrong("no result")
	case r.Status == task.Completed && !bytes.Contains(r.Answer.Result, []byte(`"text":`)):
		wrong("the result is %s", r.Answer.Result)
	case k.rounds == 2 && k.cause == nil && k.total == 0 && r.Status == task.Completed && !bytes.Contains(r.Answer.Result, []byte(`text\"yes\"`)):
		wrong("an answer was lost: %s", r.Answer.Result)
	}
	// Guarantee 5: and these do end it, where it has one round and listens.
	for why, at := range map[string]time.Duration{"cancel": k.cancelled, "shutdown": k.shutdown, "end of the session": k.sessionEnds} {
		bound := at
		switch why {
		case "cancel":
			if !k.accepted {
				continue
			}
			bound = max(at, clear) + 7*s // the store tells of it
		case "shutdown":
			bound = max(at, k.answered)
		default:
			if form != task.Continued || at < k.answered {
				continue
			}
		}
		if at > 0 && k.ended > bound && !k.deaf && k.rounds == 1 {
			wrong("%s after %v, and the tool ended after %v", why, at, k.ended)
		}
	}
	if at := r.Updated.Sub(k.record.Started); !cancelled && !k.asks && at > max(k.ended, clear)+time.Minute+7*s {
		wrong("stored after %v, and the tool has ended after %v, clear after %v", at, k.ended, clear)
	}
}

func (k *simCall) String() string {
	return fmt.Sprintf("%+v begins %v, takes %v, total %v, gone %v, cancel %v, shutdown %v, session ends %v, deaf %v, asks %v, person %v, how %s, calm %v",
		k.call, k.begins, k.takes, k.total, k.gone, k.cancel, k.shutdown, k.sessionEnds, k.deaf, k.asks, k.person, k.how, k.calm)
}
