package progress

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Notifier sends one notification to the client. It is called on a goroutine of the
// reporter's, never concurrently for one call of a tool. Its context has the values of the
// one that [Start] was given, so an SDK finds its session and stream in it, and is
// cancelled only when stop gives up on the call. What it returns is dropped: what a
// client has not got, the next update brings.
type Notifier func(ctx context.Context, n Notification) error

// How long stop waits: first for what is being sent, and then the last update, to be finished,
// and then, when the context has been cancelled, for it to be given up.
const (
	finishWait = 100 * time.Millisecond
	giveUpWait = 100 * time.Millisecond
)

// settleWait is how far the answer keeps from the last notification. The TypeScript clients act
// on a result before a notification that they have read along with it, and then report its token
// as unknown: over stdio in more than half of the calls that report right before their end.
// With this distance it was 5 of 743 on a machine that was busy otherwise, and none of 683
// another time.
const settleWait = 5 * time.Millisecond

// Start sends the beats of the execution of ctx to the client that called it, updates of
// [Report] and plain beats alike, until stop is called or the execution ends. token is
// what came with the request; where it is nil, or neither a string nor a number, nothing
// is sent, and so it is where ctx has no execution.
//
// Call stop before the answer is sent, and after the execution has ended, also where it
// has timed out with its function still running: then nothing follows the answer. stop sends
// the newest update where the client has not got it yet, without waiting for the interval to
// end; a beat without an update, or one that says only what is being waited for, is dropped.
// What is being sent has 100 ms to be finished, that last update included, and as long again,
// with its context cancelled, to be given up; what has been sent is left 5 ms, since clients act
// on an answer before a notification that they read together with it. Calling stop again does
// nothing more. It is safe for concurrent use.
//
// [timeout.Hooks] has the moment to call it: Started, with the function's context.
//
// Start panics if send is nil.
//
// [timeout.Hooks]: https://pkg.go.dev/github.com/tooldeadline/tooldeadline/timeout#Hooks
func Start(ctx context.Context, token any, every time.Duration, send Notifier) (stop func()) {
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
	if every == 0 {
		every = heartbeat.DefaultInterval
	}
	r := &reporter{
		token: token, send: send, cell: c,
		// A relay's own context will not do for a notification: it is cancelled the moment the
		// execution ends, and a message that is cut in the middle can cost the session. So the
		// gate is in the reporter and not in the context.
		ctx: context.WithoutCancel(pulse.Mute(ctx)),
	}
	relay := c.Relay(ctx, max(every, 0), func(_ context.Context, detail any) { r.deliver(detail) })
	var stopping atomic.Bool
	stopped := make(chan struct{}) // not a sync.Once, for which a synctest bubble does not wait
	return func() {
		if !stopping.Swap(true) {
			relay.Stop()
			r.finish(relay.Running())
			close(stopped)
		}
		<-stopped
	}
}

// A reporter is one call of a tool as its client sees it. Deliveries come one after the
// other.
type reporter struct {
	ctx   context.Context // never ends
	token any
	send  Notifier
	cell  *pulse.Cell

	// What has been sent.
	sent bool
	last float64
	news Update // the newest that was news
	at   time.Time

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // of the newest notification
}

// deliver sends an update, or a beat where the detail is none.
func (r *reporter) deliver(detail any) {
	u, _ := detail.(*Update)
	if u == nil {
		u = &Update{}
	}
	progress, ok := r.next(u.Progress)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	r.mu.Lock()
	closed := r.closed
	r.cancel = cancel
	r.mu.Unlock()
	if closed {
		return
	}
	if !u.waiting {
		r.news = *u
	}
	if r.send(ctx, Notification{ProgressToken: r.token, Progress: progress, Total: known(u.Total), Message: u.Message}) == nil {
		r.at = time.Now()
	}
}

// pending returns the newest update that is news and has not been sent, or nil. One that came
// before a wait is still that during the wait.
func (r *reporter) pending() *Update {
	u, _ := r.cell.Lasting().(*Update)
	if u == nil || u.waiting || same(*u, r.news) {
		return nil
	}
	return u
}

// same is ==, but that NaN is NaN.
func same(a, b Update) bool {
	eq := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return eq(a.Progress, b.Progress) && eq(a.Total, b.Total) && a.Message == b.Message && a.waiting == b.waiting
}

// next returns the progress to send for p, and reports false where nothing larger than
// the last is left.
func (r *reporter) next(p float64) (float64, bool) {
	if math.IsNaN(p) || math.IsInf(p, 0) {
		p = r.last
	}
	if r.sent && p <= r.last {
		p = step(r.last)
	}
	if math.IsInf(p, 0) {
		return 0, false
	}
	r.sent, r.last = true, p
	return p, true
}

// step returns the next larger number: the smallest there is, so that it claims no work, but
// none that a reader would take for 0 or print with 300 digits. Counting up by 1 was
// rejected: a client that shows "7 of 10" would show work that nobody did.
func step(p float64) float64 {
	const least = 1e-12
	return max(math.Nextafter(p, math.Inf(1)), p+least)
}

// finish waits for what is being sent, until running is closed, sends the last update where it
// is pending, and shuts the gate: whoever has not begun by then sends nothing.
func (r *reporter) finish(running <-chan struct{}) {
	defer r.shut()
	if r.flush(running) && !r.at.IsZero() {
		time.Sleep(settleWait - time.Since(r.at))
	}
}

// flush reports false where something that is being sent has been given up.
func (r *reporter) flush(running <-chan struct{}) bool {
	if running == nil && r.pending() == nil {
		return true
	}
	timer := time.NewTimer(finishWait)
	defer timer.Stop()
	if running != nil && !r.wait(running, timer) {
		return false
	}
	last := r.pending()
	if last == nil {
		return true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		r.deliver(last)
	}()
	return r.wait(done, timer)
}

// wait reports whether done was closed before the time was up. Where it was not, it shuts the
// gate, and waits for what is being sent to be given up.
func (r *reporter) wait(done <-chan struct{}, timer *time.Timer) bool {
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	r.shut()
	timer.Reset(giveUpWait)
	select {
	case <-done:
	case <-timer.C:
	}
	return false
}

func (r *reporter) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.cancel != nil {
		r.cancel()
	}
}
