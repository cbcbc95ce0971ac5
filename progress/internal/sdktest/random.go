package sdktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A step is one action of a random tool: "sleep", which ends with the context; "deaf", a sleep that ignores the
// context; "beat", "report", "ask", "panic" or "goexit". D is the duration of a sleep.
type step struct {
	Do string
	D  time.Duration
}

// A randomCall is one call of a run: its steps, the actions of the client, and the observations.
type randomCall struct {
	steps    []step
	at       time.Duration // when the client sends the call
	token    any
	asTask   bool          // the client requests a task, as protocol Old has it
	cancel   time.Duration // when the client cancels the call, after its beginning; 0 means never
	quit     time.Duration // when the client sends tasks/cancel, after the handle; 0 means never
	x        *Exchange
	begun    time.Duration // when the call was sent
	given    time.Duration // when the client cancelled the call; 0 means never
	answer   *Message
	result   object // the result of the task, if it was fetched
	statuses []any  // the statuses of the task, one for each tasks/get

	mu     sync.Mutex    // guards the fields below
	called int           // the number of calls of the tool
	tool   time.Duration // when the tool was called
	ended  time.Duration // when the context of the tool ended; 0 if the tool returned before
	cause  error         // the cause of that end
}

// A randomRun has the settings of a server, the calls of its client, and the failures of a random test.
type randomRun struct {
	limits   timeout.Config
	soft     time.Duration
	tasks    bool
	goOn     time.Duration // After of the Continuation; 0 means none
	calls    []*randomCall
	cut      time.Duration    // when the connection is lost; 0 means never
	shutdown bool             // the server is shut down after a minute; only over lines
	outage   [2]time.Duration // when the store begins to fail, and for how long
}

func newRun(r *rand.Rand, w Way) *randomRun {
	some := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most/ms)))*ms + 1 } // never a limit
	run := &randomRun{limits: timeout.Config{Total: time.Duration(20+r.IntN(60)) * s, Grace: 7 * s}}
	if r.IntN(2) == 0 {
		run.limits.Idle = time.Duration(5+r.IntN(15)) * s
	}
	if run.tasks = r.IntN(2) == 0; run.tasks {
		if run.soft = time.Duration(1+r.IntN(30)) * s; r.IntN(3) == 0 {
			run.outage = [2]time.Duration{some(60 * s), some(60 * s)}
		}
	}
	if r.IntN(3) == 0 {
		run.goOn = time.Duration(2+r.IntN(30)) * s
	}
	for i := range 1 + r.IntN(5) {
		c := &randomCall{at: some(30 * s)}
		for range r.IntN(8) {
			do := []string{"sleep", "sleep", "sleep", "deaf", "beat", "report", "report", "report", "ask"}[r.IntN(9)]
			if do == "ask" && (w.Stateless || w.Version == New || w.Name == "SSE" || r.IntN(2) == 0) {
				do = "sleep"
			}
			c.steps = append(c.steps, step{do, some(20 * s)})
		}
		if r.IntN(6) == 0 {
			c.steps = append(c.steps, step{[]string{"panic", "goexit"}[r.IntN(2)], 0})
		}
		if r.IntN(4) > 0 {
			c.token = fmt.Sprint("t", i)
		}
		c.asTask = run.tasks && w.Version == Old && r.IntN(2) == 0
		if r.IntN(4) == 0 {
			c.cancel = some(40 * s)
		}
		if r.IntN(5) == 0 {
			c.quit = some(20 * s)
		}
		run.calls = append(run.calls, c)
	}
	if r.IntN(5) == 0 {
		run.cut = some(60 * s)
	}
	run.shutdown = w.lines() && r.IntN(4) == 0
	return run
}

// play runs the steps of a call. It is the tool.
func (c *randomCall) play(ctx context.Context, call *Call) (*Result, error) {
	for _, st := range c.steps {
		switch st.Do {
		case "sleep":
			if Sleep(ctx, st.D) != nil {
				return Text("part"), nil
			}
		case "deaf":
			time.Sleep(st.D)
		case "beat":
			heartbeat.Beat(ctx)
		case "report":
			progress.Report(ctx, progress.Update{Progress: float64(st.D / s), Message: "at work"})
		case "ask":
			if _, err := call.Elicit(ctx, "?"); err != nil {
				return Text("part"), nil
			}
		case "panic":
			panic("random")
		case "goexit":
			runtime.Goexit()
		}
	}
	return Text("done"), nil
}

// model returns when a call ends if the client does not cancel it, and the beginning of the text of its result. exact
// is false if the model cannot say: a person is asked, or two events happen at the same instant.
func (c *randomCall) model(l timeout.Config) (after time.Duration, text string, exact bool) {
	var at, last time.Duration
	stop := func() (time.Duration, string) {
		if l.Idle > 0 && last+l.Idle < l.Total {
			return last + l.Idle, "No progress for "
		}
		return l.Total, "Tool exceeded wall-clock limit"
	}
	for _, st := range c.steps {
		end := at + st.D
		when, text := stop()
		switch st.Do {
		case "ask":
			return 0, "", false
		case "beat", "report":
			last = at
		case "panic":
			return at, "panic: random", true
		case "goexit":
			return at, "timeout: the function called runtime.Goexit", true
		case "sleep":
			if when <= end {
				return when, text, when < end
			}
			at = end
		case "deaf":
			if when <= end { // a later sleep returns at once, because the context has ended
				return min(end, when+l.Grace), text, when < end && end > when+l.Grace
			}
			at = end
		}
	}
	return at, "done", true
}

// random plays random runs, and checks each against the guarantees of packages toolcall, task and adapter.
func random(t *testing.T, sdk SDK) {
	for seed := range harness.Seeds(t, 150) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := Ways[r.IntN(len(Ways))]
		run := newRun(r, w)
		if w.Name == "SSE" && !sdk.TasksOverSSE {
			for _, c := range run.calls {
				c.asTask = false
			}
		}
		ok := t.Run(fmt.Sprintf("%d %s", seed, w.Name), func(t *testing.T) {
			bubble(t, func(t *testing.T) { run.play(t, sdk, w) })
		})
		if !ok {
			calls := ""
			for _, c := range run.calls {
				calls += fmt.Sprintf("\n  at %v token %v asTask %v cancel %v quit %v: %v", c.at, c.token, c.asTask, c.cancel, c.quit, c.steps)
			}
			t.Fatalf("%+v soft %v tasks %v continuation %v cut %v shutdown %v outage %v%s", run.limits, run.soft, run.tasks, run.goOn, run.cut, run.shutdown, run.outage, calls)
		}
	}
}

func (run *randomRun) play(t *testing.T, sdk SDK, w Way) {
	begun := time.Now()
	now := func() time.Duration { return time.Since(begun) }
	var mu sync.Mutex
	started, finished := 0, 0
	count := func(n *int) func(context.Context, timeout.Snapshot) {
		return func(context.Context, timeout.Snapshot) { mu.Lock(); defer mu.Unlock(); *n++ }
	}
	store := &failingStore{Store: task.NewMemory(0, 0), with: errors.New("no connection")}
	config := Config{Interval: 3 * s, Policy: &policy.Policy{Tools: map[string]policy.Tool{"run": {Limits: &run.limits, Soft: run.soft}}}, Continuation: run.goOn,
		Hooks: timeout.Hooks{Started: count(&started), Finished: count(&finished)},
		Tools: map[string]Tool{"run": {Run: func(ctx context.Context, call *Call) (*Result, error) {
			n, _ := call.Arguments["n"].(float64)
			c := run.calls[int(n)]
			c.mu.Lock()
			c.called++
			c.tool = now()
			c.mu.Unlock()
			stop := context.AfterFunc(ctx, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.ended == 0 {
					c.ended, c.cause = now(), context.Cause(ctx)
				}
			})
			defer stop()
			return c.play(ctx, call)
		}}}}
	if run.tasks {
		config.Tasks = &task.Tasks{Poll: s, Store: store}
	}
	srv := sdk.NewServer(config)
	p := Dial(t, srv, w)
	p.declare = run.tasks
	p.ask = func(Message) any { time.Sleep(3 * s); return object{"action": "accept", "content": object{}} }
	var all sync.WaitGroup
	for n, c := range run.calls {
		all.Go(func() { run.call(p, n, c, now) })
	}
	if run.outage[1] > 0 {
		time.AfterFunc(run.outage[0], func() { store.times.Store(1 << 30) })
		time.AfterFunc(run.outage[0]+run.outage[1], func() { store.times.Store(0) })
	}
	if run.cut > 0 {
		time.Sleep(run.cut)
		p.cut()
	}
	if run.shutdown {
		time.Sleep(time.Minute)
		p.stop()
	}
	all.Wait()
	time.Sleep(time.Hour)
	if config.Tasks != nil {
		_ = config.Tasks.Close()
	}
	p.close()
	synctest.Wait()
	mu.Lock()
	if started != finished {
		t.Errorf("%d executions have begun, and %d have ended", started, finished)
	}
	mu.Unlock()
	for n, c := range run.calls {
		run.judge(t, p, n, c)
	}
}

// call sends a call, cancels it if the run says so, and polls the task that it becomes.
func (run *randomRun) call(p *Peer, n int, c *randomCall, now func() time.Duration) {
	time.Sleep(c.at)
	if run.cut > 0 && c.at >= run.cut && !p.Stateless {
		return // the connection of the client has been cut
	}
	more := object{"arguments": object{"n": n}}
	if c.asTask {
		more["task"] = object{"ttl": 600000}
	}
	c.begun = now()
	c.x = p.call("run", c.token, more)
	if c.cancel > 0 {
		time.AfterFunc(c.cancel, func() {
			if c.x.answered() || run.cut > 0 && now() >= run.cut {
				return
			}
			c.mu.Lock()
			c.given = now()
			c.mu.Unlock()
			if p.http() && p.Stateless {
				c.x.hangUp()
			} else {
				c.x.cancel("Request timed out")
			}
		})
	}
	c.answer = c.x.wait()
	id := taskOf(c.answer)
	if id == nil {
		return
	}
	if c.quit > 0 {
		time.AfterFunc(c.quit, func() { p.start("tasks/cancel", object{"taskId": id}) })
	}
	for range 60 {
		if run.cut > 0 && now() >= run.cut && !p.Stateless || run.shutdown && now() >= time.Minute {
			return
		}
		m := p.Request("tasks/get", object{"taskId": id})
		if m != nil && m.Result != nil {
			c.statuses = append(c.statuses, m.Result["status"])
			if status := m.Result["status"]; status == "completed" || status == "failed" {
				if c.result, _ = m.Result["result"].(object); p.Version == Old {
					if m := p.Request("tasks/result", object{"taskId": id}); m != nil {
						c.result = m.Result
					}
				}
				if c.result != nil {
					return
				}
			}
		}
		time.Sleep(3 * s)
	}
}

// taskOf returns the id of the task in an answer, or nil if the answer is not a task.
func taskOf(m *Message) any {
	if m == nil || m.Result == nil {
		return nil
	}
	if h, ok := m.Result["task"].(object); ok {
		return h["taskId"]
	}
	if m.Result["resultType"] == "task" {
		return m.Result["taskId"]
	}
	return nil
}
