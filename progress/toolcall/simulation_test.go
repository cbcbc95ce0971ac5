package toolcall_test

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
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A simCall is a call, and what has been seen of it. Instants are since the beginning of the run, and no two are equal.
type simCall struct {
	begins, takes, beats, gone time.Duration // 0: no beats, not gone
	total, idle, maxTotal      time.Duration // of the tool
	asked                      any           // timeoutMs
	left, silent               time.Duration // for which the client waits, as it says; 0: it does not
	token                      any
	deaf                       bool
	heeds                      bool // the closing
	reports                    bool // its beats are updates
	notifier, how              string
	inner                      bool          // it makes a call within
	writes                     time.Duration // its answer

	mu                 sync.Mutex
	started, sentInner int
	inFlight           int           // notifications
	sent               time.Duration // the last
	ended, answered    time.Duration
	err                error
}

const simGrace = 3*time.Second + 7

// SPEC 2.6, 2.8, 2.9, 3.9, 3.11, 3.13, 7.4, 7.5, 11.7, 18.4: TestSimulation makes calls of one server, with a shutdown. What
// must hold of each, by the guarantees of the package, is in check.
func TestSimulation(t *testing.T) {
	for seed := range harness.Seeds(t, 300) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	}
}

func simulate(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	dice := func(n int) bool { return rng.IntN(n) == 0 }
	odd := time.Duration(0)
	at := func(most int) time.Duration {
		odd += 1009
		return time.Duration(1+rng.IntN(most))*100*time.Millisecond + odd
	}
	var drain toolcall.Drain
	var shutdown, aborts, returned time.Duration // 0: never
	var limit time.Duration
	if dice(2) {
		shutdown = at(200)
		if aborts = shutdown; dice(2) {
			limit = toolcall.ShutdownLimit + at(50)
			aborts += limit - toolcall.ShutdownLimit
		}
	}
	start := time.Now()
	var all []*simCall
	var left sync.WaitGroup
	for range 1 + rng.IntN(6) {
		k := &simCall{begins: at(150), takes: at(200), deaf: dice(4), inner: dice(4),
			heeds: dice(3), reports: dice(2), notifier: []string{"", "slow", "uneven", "deaf", "panics", "fails"}[rng.IntN(6)], how: []string{"", "fails", "panics", "exits"}[rng.IntN(4)]}
		if dice(2) {
			k.total = at(200)
		}
		if dice(2) {
			k.idle = at(100)
		}
		if dice(2) {
			k.beats = at(20)
		}
		if k.notifier == "uneven" { // there is something to send while something is sent, and it returns then
			k.takes += time.Duration(rng.IntN(100)) * time.Millisecond
			k.beats, k.reports = 30*time.Millisecond+at(1)%time.Millisecond, true
		}
		if dice(3) {
			k.gone = k.begins + at(100)
		}
		if dice(3) {
			k.maxTotal = max(k.total, time.Second) + at(50)
			k.asked = []any{float64(1 + rng.IntN(30_000)), 0.0, "soon"}[rng.IntN(3)]
		}
		if dice(2) {
			k.token, k.writes = "t", at(10)
		}
		if dice(3) {
			k.left = time.Duration(1+rng.IntN(30_000)) * time.Millisecond
		}
		if dice(4) {
			k.silent = time.Duration(1+rng.IntN(20_000)) * time.Millisecond
		}
		all = append(all, k)
		left.Go(func() {
			time.Sleep(k.begins)
			k.run(drain.Context(t.Context()), t, start)
		})
	}
	if shutdown > 0 {
		left.Go(func() {
			time.Sleep(shutdown)
			ctx := t.Context()
			if limit > 0 {
				limited, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				ctx = limited
			}
			if err := drain.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			returned = time.Since(start)
		})
	}
	left.Wait()
	time.Sleep(time.Hour) // guarantee 5: what is left are tools, which end by then
	for _, k := range all {
		k.check(t, shutdown, aborts, returned)
	}
}

func (k *simCall) run(ctx context.Context, t *testing.T, start time.Time) {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	if k.gone > 0 {
		time.AfterFunc(k.gone-k.begins, func() { gone(toolcall.ErrDisconnected) })
	}
	s := &toolcall.Settings{MetaTimeout: true, Interval: -1, Policy: &policy.Policy{Tools: map[string]policy.Tool{
		"tool": {Limits: &timeout.Config{Total: k.total, Idle: k.idle, Grace: simGrace}, MaxTotal: k.maxTotal},
	}, Lookup: func(string) (string, bool) { return "", false }}}
	c := toolcall.Call{Tool: "tool", Session: 1, Token: k.token, Meta: map[string]any{"timeoutMs": k.asked}}
	if k.left > 0 || k.silent > 0 {
		c.Meta[policy.BudgetKey] = policy.Budget{Left: k.left, Idle: k.silent}.Object()
	}
	sends := 0
	c.Send = func(ctx context.Context, _ progress.Notification) error {
		k.mu.Lock()
		sends++
		second := sends%2 == 0
		k.sent = time.Since(start)
		k.inFlight++
		k.mu.Unlock()
		defer func() {
			k.mu.Lock()
			k.inFlight--
			k.mu.Unlock()
		}()
		switch k.notifier {
		case "slow":
			time.Sleep(90 * time.Millisecond)
		case "uneven": // each second one takes all the time that it may have, as far as that goes
			if second {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				time.Sleep(40 * time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
		case "deaf":
			time.Sleep(10 * time.Minute)
		case "panics":
			panic("notifier")
		case "fails":
			return errors.New("disconnected")
		}
		return nil
	}
	c.Answered = func(leave func()) {
		time.AfterFunc(k.writes, func() {
			k.mu.Lock()
			k.answered = time.Since(start)
			k.mu.Unlock()
			leave()
		})
	}
	work := func(ctx context.Context) (string, error) {
		k.mu.Lock()
		k.started++
		k.mu.Unlock()
		for begun := time.Now(); time.Since(begun) < k.takes && (k.deaf || ctx.Err() == nil); {
			d := k.takes - time.Since(begun)
			if k.beats > 0 {
				d = min(d, k.beats)
				heartbeat.Beat(ctx)
				if k.reports {
					progress.Report(ctx, progress.Update{Message: fmt.Sprint("for ", time.Since(begun))})
				}
			}
			if k.deaf {
				time.Sleep(d)
				continue
			}
			closing := timeout.Closing(ctx)
			if !k.heeds {
				closing = nil
			}
			select {
			case <-time.After(d):
				continue
			case <-closing:
			case <-ctx.Done():
			}
			break
		}
		switch k.how {
		case "fails":
			return "", errors.New("no such file")
		case "panics":
			panic("tool")
		case "exits":
			runtime.Goexit()
		}
		return "done", nil
	}
	tool := work
	if k.inner { // guarantee 4: it has the same token, and so nothing of its own is sent
		within := toolcall.Call{Tool: "within", Session: 1, Token: k.token, Send: func(context.Context, progress.Notification) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.sentInner++
			return nil
		}}
		none := &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Grace: simGrace}, Lookup: s.Policy.Lookup}}
		tool = func(ctx context.Context) (string, error) { return toolcall.Do(ctx, none, within, work) }
	}
	value, err := toolcall.Do(ctx, s, c, tool)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended, k.err = time.Since(start), err
	if k.inFlight > 0 && k.notifier != "deaf" { // guarantee 4
		t.Errorf("%s: %d notifications in flight at the answer", k, k.inFlight)
	}
	if err == nil && value != "done" {
		t.Errorf("%s: %q", k, value)
	}
}

// check has what must hold of a call.
func (k *simCall) check(t *testing.T, shutdown, aborts, returned time.Duration) {
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: started %d times, ended after %v with %v: %s", k, k.started, k.ended, k.err, fmt.Sprintf(format, args...))
	}
	// Guarantee 6: when Shutdown has returned, every call has its answer, and none has begun since.
	if k.begins < returned && (k.answered == 0 || k.answered > returned) {
		wrong("answered after %v, and Shutdown has returned after %v", k.answered, returned)
	}
	// Guarantee 2: what cannot be read is an error, and the tool is not called.
	if ms, number := k.asked.(float64); k.asked != nil && (!number || ms == 0) {
		if bad := (*timeout.ConfigError)(nil); !errors.As(k.err, &bad) || bad.Key != "timeoutMs" || k.started > 0 {
			wrong("want an error for timeoutMs")
		}
		return
	} else if number {
		k.total = min(time.Duration(ms)*time.Millisecond, k.maxTotal)
	}
	if shutdown > 0 && k.begins > shutdown && k.begins > aborts {
		if !errors.Is(k.err, toolcall.ErrShutdown) || k.started > 0 {
			wrong("want it refused")
		}
		return
	}
	grace := simGrace
	if k.left > 0 || k.silent > 0 { // the client has its answer before it gives up
		least := func(a, b time.Duration) time.Duration {
			if a == 0 || b > 0 && b < a {
				return b
			}
			return a
		}
		left, silent := k.left, k.silent
		if k.token == nil {
			left, silent = least(left, silent), 0
		}
		grace = min(grace, max(least(left, silent)/12, 1))
		k.total, k.idle = least(k.total, left-left/6), least(k.idle, silent-silent/6)
	}
	// Guarantee 1: the first of these ends it.
	natural := k.begins + k.takes
	if k.heeds && !k.deaf && k.begins < shutdown && shutdown < aborts {
		natural = min(natural, shutdown)
	}
	stop, kind := time.Duration(0), error(nil)
	first := func(at time.Duration, err error) {
		if at > k.begins && (stop == 0 || at < stop) {
			stop, kind = at, err
		}
	}
	if k.total > 0 {
		first(k.begins+k.total, timeout.ErrTotal)
	}
	if idle := k.idle; idle > 0 && (k.total == 0 || idle < k.total) && (k.beats == 0 || k.beats > idle) {
		first(k.begins+idle, timeout.ErrIdle)
	}
	first(k.gone, toolcall.ErrDisconnected)
	if shutdown > 0 {
		if k.begins > shutdown { // it has come while others were closing
			if !errors.Is(k.err, toolcall.ErrShutdown) || k.started > 0 {
				wrong("want it refused")
			}
			return
		}
		first(aborts, toolcall.ErrShutdown)
	}
	end := natural
	if stop > 0 && stop < natural {
		end = stop
		if k.deaf {
			end = min(natural, stop+grace)
		}
		if !errors.Is(k.err, kind) {
			wrong("want %v", kind)
		}
	} else {
		// Guarantee 3: an error for whatever the tool does.
		panicked := (*timeout.PanicError)(nil)
		if ok := map[string]bool{"": k.err == nil, "fails": k.err != nil, "panics": errors.As(k.err, &panicked), "exits": errors.Is(k.err, timeout.ErrGoexit)}[k.how]; !ok {
			wrong("want what it does")
		}
	}
	late := time.Duration(0)
	if k.token != nil {
		late = 205 * time.Millisecond
	}
	if k.ended < end || k.ended > end+late || k.started != 1 {
		wrong("want the end after %v", end)
	}
	// Guarantee 4.
	if k.sent > k.ended || k.sentInner > 0 || k.token == nil && k.sent > 0 || k.token != nil && k.beats > 0 && k.sent == 0 {
		wrong("sent after %v, and %d times for the call within", k.sent, k.sentInner)
	}
}

func (k *simCall) String() string {
	return fmt.Sprintf("begins %v, takes %v, beats %v, gone %v, total %v, idle %v, most %v, asked %v, left %v, silent %v, token %v, deaf %v, heeds %v, reports %v, notifier %q, how %q, inner %v, writes %v",
		k.begins, k.takes, k.beats, k.gone, k.total, k.idle, k.maxTotal, k.asked, k.left, k.silent, k.token, k.deaf, k.heeds, k.reports, k.notifier, k.how, k.inner, k.writes)
}
