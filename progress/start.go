package progress

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A Notifier sends one notification to the client. It is called on a goroutine of the
// reporter's, never concurrently for one call of a tool. Its context has the values of the
// one that [Start] was given, so an SDK finds its session and stream in it, and is
// cancelled only when stop gives up on the call. What it returns is dropped: a client
// that cannot be told is told again by the next update.
type Notifier func(ctx context.Context, n Notification) error

// An Option changes how [Start] reports.
type Option interface{ apply(*reporter) }

type optionFunc func(*reporter)

func (f optionFunc) apply(r *reporter) { f(r) }

// WithInterval is the shortest time between two notifications. Where it is 0 or negative,
// and without this option, it is [heartbeat.DefaultInterval], 10 s (SPEC 7.2).
func WithInterval(d time.Duration) Option {
	return optionFunc(func(r *reporter) { r.every = d })
}

// How long stop waits for a notification in flight: first for it to be finished, then,
// its context cancelled, for it to be given up.
const (
	finishWait = 100 * time.Millisecond
	giveUpWait = 100 * time.Millisecond
)

// Start sends the beats of the execution of ctx to the client that called it, updates of
// [Report] and plain beats alike, until stop is called or the execution ends. token is
// what came with the request; where it is nil, or neither a string nor a number, nothing
// is sent, and so it is where ctx has no execution.
//
// Call stop before the answer is sent, and after the execution has ended, also where it
// has timed out with its function still running: then nothing follows the answer
// (SPEC 7.4). What was pending is dropped; what is being sent has 100 ms to be finished,
// and as long again, with its context cancelled, to be given up. Calling stop again does
// nothing more. It is safe for concurrent use.
//
// [timeout.Hooks] has the moment to call it: Started, with the function's context.
//
// Start panics if send is nil.
//
// [timeout.Hooks]: https://pkg.go.dev/github.com/tooldeadline/tooldeadline/timeout#Hooks
func Start(ctx context.Context, token any, send Notifier, opts ...Option) (stop func()) {
	if send == nil {
		panic("progress: nil Notifier")
	}
	if _, err := marshalToken(token); err != nil {
		return func() {}
	}
	r := &reporter{token: token, send: send}
	for _, o := range opts {
		if o != nil {
			o.apply(r)
		}
	}
	unrelay := heartbeat.Relay(ctx, r.every, r)
	return func() {
		unrelay()
		r.close()
	}
}

// A reporter is the sink of one call of a tool. The relay calls it once at a time.
type reporter struct {
	token any
	send  Notifier
	every time.Duration

	// What the client has been told. The relay's calls come one after the other.
	told bool
	last float64

	mu     sync.Mutex
	closed bool
	flight *flight // nil while nothing is being sent
}

// A flight is a notification that is being sent.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Beat sends what the heartbeat knows. The relay's own context will not do: it is
// cancelled the moment the execution ends, and a message that is cut in the middle can
// cost the session. So the gate is here and not in the context.
func (r *reporter) Beat(ctx context.Context, e heartbeat.Event) error {
	u, _ := e.Detail.(*Update)
	if u == nil {
		u = &Update{}
	}
	progress, ok := r.next(u.Progress)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if !r.begin(&flight{cancel, make(chan struct{})}) {
		return nil
	}
	defer r.end() // also if send panics, which the relay recovers
	return r.send(ctx, Notification{ProgressToken: r.token, Progress: progress, Total: known(u.Total), Message: u.Message})
}

// next gives the progress to send for p, and reports false where nothing larger than
// the last is left.
func (r *reporter) next(p float64) (float64, bool) {
	if math.IsNaN(p) || math.IsInf(p, 0) {
		p = r.last
	}
	if r.told && p <= r.last {
		p = step(r.last)
	}
	if math.IsInf(p, 0) {
		return 0, false
	}
	r.told, r.last = true, p
	return p, true
}

// step gives the next larger number: the smallest there is, so that it claims no work, but
// none that a reader would take for 0 or print with 300 digits. Counting up by 1 was
// rejected: a client that shows "7 of 10" would show work that nobody did.
func step(p float64) float64 {
	const least = 1e-12
	return max(math.Nextafter(p, math.Inf(1)), p+least)
}

func (r *reporter) begin(f *flight) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.flight = f
	return true
}

func (r *reporter) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.flight.done)
	r.flight = nil
}

// close shuts the gate: whoever has not begun by now sends nothing.
func (r *reporter) close() {
	r.mu.Lock()
	r.closed = true
	f := r.flight
	r.mu.Unlock()
	if f == nil {
		return
	}
	timer := time.NewTimer(finishWait)
	defer timer.Stop()
	select {
	case <-f.done:
		return
	case <-timer.C:
	}
	f.cancel()
	timer.Reset(giveUpWait)
	select {
	case <-f.done:
	case <-timer.C:
	}
}
