package progress

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
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
// and without this option, it is [heartbeat.DefaultInterval], 10 s.
func WithInterval(d time.Duration) Option {
	return optionFunc(func(r *reporter) {
		if r.every = d; d <= 0 {
			r.every = heartbeat.DefaultInterval
		}
	})
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
// has timed out with its function still running: then nothing follows the answer. What
// waits for an interval to end is dropped; what is being sent, or due to be, has 100 ms
// to be finished, and as long again, with its context cancelled, to be given up. Calling
// stop again does nothing more. It is safe for concurrent use.
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
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	r := &reporter{token: token, send: send, cell: c, every: heartbeat.DefaultInterval}
	for _, o := range opts {
		if o != nil {
			o.apply(r)
		}
	}
	relay := c.Relay(ctx, r.every, r.deliver)
	return func() {
		relay.Stop()
		r.close(relay.Finish())
	}
}

// A reporter is one call of a tool as its client sees it. Deliveries come one after the
// other.
type reporter struct {
	token any
	send  Notifier
	cell  *pulse.Cell
	every time.Duration

	// What the client has been told.
	told bool
	last float64

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // of the newest notification
}

// deliver sends what the heartbeat knows. The relay's own context will not do for it: that
// is cancelled the moment the execution ends, and a message that is cut in the middle can
// cost the session. So the gate is here and not in the context.
func (r *reporter) deliver(ctx context.Context) {
	u, _ := r.cell.Detail().(*Update)
	if u == nil {
		u = &Update{}
	}
	progress, ok := r.next(u.Progress)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.mu.Lock()
	closed := r.closed
	r.cancel = cancel
	r.mu.Unlock()
	if !closed {
		_ = r.send(ctx, Notification{ProgressToken: r.token, Progress: progress, Total: known(u.Total), Message: u.Message})
	}
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

// close waits for what is being sent, until done is closed, and shuts the gate: whoever has
// not begun by then sends nothing.
func (r *reporter) close(done <-chan struct{}) {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if done != nil && !closed {
		r.wait(done)
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

func (r *reporter) wait(done <-chan struct{}) {
	timer := time.NewTimer(finishWait)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	timer.Reset(giveUpWait)
	select {
	case <-done:
	case <-timer.C:
	}
}
