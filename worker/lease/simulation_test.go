package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A history is one random run: an engine with a few items, workers on machines to which something happens, and what was
// wrong. All times are of the engine's clock unless they are asked of a machine.
type history struct {
	seed     uint64
	duration time.Duration
	every    time.Duration
	grace    time.Duration
	fences   bool
	machines []*machine
	over     chan struct{}
	workers  sync.WaitGroup

	mu    sync.Mutex
	items []*item
	left  int // items that are not done
	done  chan struct{}
	wrong []string
}

// An item is what the engine leases.
type item struct {
	id       int
	token    int
	until    time.Time // of the lease
	detail   int
	acked    int // how often it was acknowledged
	attempts []*attempt
}

// An attempt is one lease of an item.
type attempt struct {
	*history
	*item
	machine *machine
	token   int
	left    int        // what the attempt before has left
	rng     *rand.Rand // of the function
	net     *rand.Rand // of its writes

	working bool      // the function
	obeys   bool      // when it is told to stop
	newest  int       // its newest detail
	beaten  time.Time // when that came
	ended   bool      // the function has returned, or was abandoned
	sent    time.Time // the newest renewal that has succeeded, by the machine
	writing bool
	lost    time.Time // when a write was refused
	revoked bool      // the engine has forgotten the lease
	stored  bool      // as done
}

// SPEC 13.5. Guarantees 1 to 10.
func TestSimulation(t *testing.T) {
	for seed := range harness.Seeds(t, 2000) {
		h := &history{seed: seed}
		synctest.Test(t, func(*testing.T) { h.run() })
		for _, w := range h.wrong {
			t.Error(w)
		}
	}
}

func (h *history) note(format string, args ...any) { // with the lock held
	if len(h.wrong) < 5 {
		h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
	}
}

func (h *history) run() {
	rng := rand.New(rand.NewPCG(h.seed, 1))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(rng.Int64N(int64(b-a))) }
	h.duration = between(3*time.Second, time.Minute)
	if rng.IntN(2) == 0 {
		h.every = between(h.duration/20, h.duration/3)
	}
	h.grace = between(h.duration/50, h.duration/2)
	h.fences = rng.IntN(3) > 0
	h.over, h.done = make(chan struct{}), make(chan struct{})
	h.left = 1 + rng.IntN(3)
	for i := range h.left {
		h.items = append(h.items, &item{id: i})
	}
	for i := range 2 + rng.IntN(2) {
		m := &machine{over: h.over, begun: time.Now(), speed: 0.98 + 0.04*rng.Float64()}
		h.machines = append(h.machines, m)
		mine := rand.New(rand.NewPCG(h.seed, uint64(100+i)))
		h.workers.Go(func() { h.work(m, mine) })
	}
	var faults sync.WaitGroup
	for range rng.IntN(6) {
		i, at, d := rng.IntN(len(h.machines)), between(0, 6*h.duration), between(h.duration/20, 3*h.duration)
		m, kind, how := h.machines[i], rng.IntN(6), cut(rng.IntN(int(cuts)))
		faults.Go(func() {
			wait(at, h.over)
			switch {
			case kind == 0 && i > 0:
				m.pause(0, true)
			case kind < 3:
				m.pause(d, false)
			case kind == 3 && h.fences:
				h.revoke()
			default:
				m.disconnect(d, how)
			}
		})
	}
	select {
	case <-h.done:
		time.Sleep(4 * h.duration) // whoever thinks that it holds something finds that it does not
	case <-time.After(1000 * h.duration):
		h.mu.Lock()
		h.note("lost: %d of %d items are not done", h.left, len(h.items))
		h.mu.Unlock()
	}
	close(h.over)
	h.workers.Wait()
	faults.Wait()
	time.Sleep(10 * h.duration) // what was abandoned ends
}

// work is a worker: it takes one item after the other.
func (h *history) work(m *machine, rng *rand.Rand) {
	for {
		m.sleep(time.Duration(rng.Int64N(int64(h.duration/4))), h.over)
		select {
		case <-h.over:
			return
		default:
		}
		asked := m.Now()
		var a *attempt
		ctx, cancel := context.WithTimeout(context.Background(), h.duration/2)
		err := m.request(ctx, false, h.latency(rng), h.latency(rng), func() error { a = h.grant(m, rng); return nil })
		cancel()
		if err == nil && a != nil {
			a.run(asked)
		}
	}
}

func (h *history) latency(rng *rand.Rand) time.Duration {
	return 1 + time.Duration(rng.Int64N(int64(h.duration/40)))
}

// grant leases an item that nobody holds.
func (h *history) grant(m *machine, rng *rand.Rand) *attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.items {
		if i.acked > 0 || time.Now().Before(i.until) {
			continue
		}
		for _, a := range i.attempts {
			if a.working && a.obeys && !a.ended && !a.revoked && a.machine.ran(h.duration) {
				h.note("guarantee 3: item %d is given to another while attempt %d works on it", i.id, a.token)
			}
		}
		i.token++
		i.until = time.Now().Add(h.duration)
		a := &attempt{history: h, item: i, machine: m, token: i.token, left: i.detail, newest: i.detail,
			rng: rand.New(rand.NewPCG(h.seed, uint64(1000*i.id+i.token))), net: rand.New(rand.NewPCG(h.seed, uint64(1e6+1000*i.id+i.token)))}
		i.attempts = append(i.attempts, a)
		return a
	}
	return nil
}

// revoke has the engine forget its leases.
func (h *history) revoke() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.items {
		i.until = time.Time{}
		for _, a := range i.attempts {
			a.revoked = true
		}
	}
}

// run holds the item under a lease.
func (a *attempt) run(asked time.Time) {
	a.sent = asked
	limits := timeout.Config{Idle: 3 * a.duration, Grace: a.grace}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-a.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := lease.Run(ctx, lease.Lease{
		Duration: a.duration, Every: a.every, Since: asked, Token: a.token, Detail: a.left,
		Renew: func(ctx context.Context, s lease.Checkpoint) error { return a.write(ctx, s, false) },
		Release: func(ctx context.Context, s lease.Checkpoint) error {
			return a.write(ctx, s, true)
		},
	}, a.function, limits, timeout.WithClock(a.machine))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if err == nil && !a.stored && !a.isOver() {
		a.note("item %d, attempt %d: Run has returned nil, and the item is not stored as done", a.id, a.token)
	}
	var stopped *timeout.Error
	told := errors.As(err, &stopped) && errors.Is(stopped.Cause, lease.ErrLost)
	if age := a.machine.Now().Sub(a.sent); errors.Is(err, errAway) && !told && a.lost.IsZero() && age < a.duration*3/4 && !a.isOver() {
		a.note("guarantee 8: item %d, attempt %d: not tried again %v after the last renewal: %v", a.id, a.token, age, err)
	}
	if errors.Is(err, lease.ErrUnconfirmed) && (errors.Is(err, lease.ErrLost) || !a.isOver()) {
		a.note("guarantee 8: item %d, attempt %d: the release was given up: %v", a.id, a.token, err)
	}
	if errors.Is(err, lease.ErrLost) && a.lost.IsZero() && a.machine.calm(2*a.duration) && !a.isOver() {
		a.note("guarantee 1: item %d, attempt %d: lost without a fault: %v", a.id, a.token, err)
	}
}

func (h *history) isOver() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// write is a renewal or the release.
func (a *attempt) write(ctx context.Context, s lease.Checkpoint, release bool) error {
	now := a.machine.Now()
	a.mu.Lock()
	switch age := now.Sub(a.sent); {
	case a.isOver():
	case !a.lost.IsZero():
		a.note("guarantee 5: item %d, attempt %d: a write after one was refused", a.id, a.token)
	case age >= a.duration-a.duration/6 && a.machine.ran(1):
		a.note("guarantee 4: item %d, attempt %d: a write %v after the last renewal, of a lease of %v", a.id, a.token, age, a.duration)
	case !release && a.ended:
		a.note("guarantee 2: item %d, attempt %d: a renewal after the end of the work", a.id, a.token)
	case a.writing:
		a.note("guarantee 6: item %d, attempt %d: two writes at a time", a.id, a.token)
	case s.Token != a.token:
		a.note("guarantee 6: item %d, attempt %d: the token is %v", a.id, a.token, s.Token)
	case s.Detail != a.newest && (release && !a.working || !a.beaten.Equal(time.Now())):
		a.note("guarantee 7: item %d, attempt %d: the detail is %v, and %d the newest", a.id, a.token, s.Detail, a.newest)
	}
	a.writing = true
	if release && !errors.Is(s.Err, context.Canceled) {
		a.ended = true
	}
	there, back := a.latency(a.net), a.latency(a.net)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.writing = false
	}()
	arrived := false
	err := a.machine.request(ctx, a.fences, there, back, func() error {
		arrived = true
		return a.receive(s, release)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && !release:
		a.sent = now
	case errors.Is(err, lease.ErrLost):
		a.lost = time.Now()
	case err != nil && release && arrived && !a.fences:
		a.lost = time.Now()
		return fmt.Errorf("%w: %w", lease.ErrLost, err) // it must not be repeated
	}
	return err
}

// receive is what the engine does with a write.
func (a *attempt) receive(s lease.Checkpoint, release bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.item.token != a.token || a.fences && !time.Now().Before(a.until) && !a.stored {
		if a.fences {
			return lease.ErrLost
		}
		if a.machine.ran(a.duration) {
			a.note("guarantee 5: item %d, attempt %d: a write that meets the lease of attempt %d", a.id, a.token, a.item.token)
		}
		return nil
	}
	a.detail = s.Detail.(int)
	switch {
	case !release:
		a.until = time.Now().Add(a.duration)
	case s.Err != nil:
		a.until = time.Time{}
	case a.stored: // the answer was lost, and it is the same again
	default:
		a.stored = true
		a.until = time.Now()
		if a.acked++; a.acked > 1 {
			a.note("item %d is acknowledged twice, the second time by attempt %d", a.id, a.token)
		}
		if a.history.left--; a.history.left == 0 {
			close(a.done)
		}
	}
	return nil
}

// function is the work of an attempt, in steps. The first attempts of an item may be of any kind.
func (a *attempt) function(ctx context.Context) error {
	kind := "obedient"
	if a.token <= 3 {
		kind = []string{"obedient", "failing", "stuck", "deaf", "holding", "panicking"}[a.rng.IntN(6)]
	}
	a.mu.Lock()
	a.working, a.obeys = true, kind != "deaf"
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.working = false
		a.mu.Unlock()
	}()
	if kind == "holding" {
		defer heartbeat.Hold(ctx)()
	}
	for range 1 + a.rng.IntN(6) {
		step, stop := 1+time.Duration(a.rng.Int64N(int64(a.duration))), ctx.Done()
		if kind == "stuck" && a.rng.IntN(3) == 0 {
			step = 100 * a.duration
		}
		if kind == "deaf" {
			stop = nil
		}
		a.machine.sleep(step, stop)
		if ctx.Err() != nil && kind != "deaf" {
			a.machine.sleep(a.grace-1, nil) // to clean up
			return context.Cause(ctx)
		}
		a.effect(ctx)
		for range a.rng.IntN(3) {
			a.beat(ctx)
		}
	}
	switch kind {
	case "failing":
		return errWork
	case "panicking":
		panic(errWork)
	}
	return nil
}

// effect is what only the holder may do.
func (a *attempt) effect(ctx context.Context) {
	if lease.Check(ctx) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.lost.IsZero() && time.Since(a.lost) > 0 && a.machine.ran(1) {
		a.note("guarantee 5: item %d, attempt %d works on after a write was refused", a.id, a.token)
	}
	if a.item.token != a.token && !a.revoked && a.machine.ran(1) && !a.isOver() {
		a.note("two believe that they hold item %d: attempts %d and %d", a.id, a.token, a.item.token)
	}
}

func (a *attempt) beat(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended && ctx.Err() == nil {
		a.newest = 1000*a.token + a.newest%1000 + 1
		a.beaten = time.Now()
		heartbeat.BeatWith(ctx, a.newest)
	}
}
