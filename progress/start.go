package progress

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Notifier sends one notification to the client. It is called on a goroutine of its own, and
// never concurrently for one call of [Start]. Its context has the values of the context passed to
// Start, in which an SDK finds its session and stream. While the Notifier runs, the context is cancelled only
// if stop gives up. An error or a panic is ignored, because the next notification has the newest state.
type Notifier func(ctx context.Context, n Notification) error

// The stop function of Start waits up to finishWait for the notification that is being sent and for the last update. It
// then cancels the context of the notification, and waits up to giveUpWait for the notifier to return.
const (
	finishWait = 100 * time.Millisecond
	giveUpWait = 100 * time.Millisecond
)

// answerDelay is the least time between the last notification and the answer. The TypeScript clients
// handle a result before a notification that they have read together with it, and then report the
// token of the notification as unknown. Over stdio this happened in more than half of the calls that
// report progress right before their end. With answerDelay it happened in 5 of 743 calls on a busy
// machine, and in none of 683 calls on another occasion.
const answerDelay = 5 * time.Millisecond

// Start sends the heartbeats of the execution of ctx to the client, both plain beats and the
// updates of [Report], until stop is called or the execution ends. While a command of package procgroup
// runs, a notification without a message gets the newest line of the command's output as its message. token
// is the progress token of the client's request. If token is nil, or neither a string nor a number, or if
// ctx has no execution, nothing is sent.
//
// every is the shortest time between two notifications. A negative value means no pause between them. 0 means
// [heartbeat.DefaultInterval].
//
// Call stop after the execution has ended and before the answer is sent, even if the execution has timed out with
// its function still running: then nothing follows the answer. If the client does not have the newest update yet,
// stop sends it without waiting for the interval to end. It sends no plain beat, and no message of an [Await]. A
// notification that is being sent and the last update have 100 ms together to finish; then the context of the
// notifier is cancelled, and the notifier has another 100 ms to return. If a notification was sent without an error,
// stop returns 5 ms after it at the earliest, because a client that reads a notification together with the answer
// handles the answer first. A second call of stop waits for the first. stop is safe for concurrent use.
//
// A good place to call Start is the Started hook of [timeout.Hooks], with the function's context.
//
// Start panics with a [*timeout.ConfigError] if send is nil.
func Start(ctx context.Context, token any, every time.Duration, send Notifier) (stop func()) {
	if send == nil {
		panic(&timeout.ConfigError{Key: "send", Value: "nil", Accepted: "one that is not nil"})
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
		// The context of the relay is cancelled when the execution ends. A notification must not use that context,
		// because a message that is cut off in the middle can end the session. Instead shut closes the reporter.
		ctx: context.WithoutCancel(pulse.Mute(ctx)),
	}
	relay := c.ClientRelay(ctx, max(every, 0), func(_ context.Context, detail any) { r.deliver(detail) })
	var stopping atomic.Bool
	stopped := make(chan struct{}) // not a sync.Once, because a wait for one does not block durably in a synctest bubble
	return func() {
		if !stopping.Swap(true) {
			relay.Stop()
			r.finish(relay.Running())
			close(stopped)
		}
		<-stopped
	}
}

// A reporter sends the notifications of one call of a tool. Its deliver method is never called concurrently.
type reporter struct {
	ctx   context.Context // never ends
	token any
	send  Notifier
	cell  *pulse.Cell

	// The fields up to mu describe the notifications sent so far. Only deliver writes them.
	sent        bool
	last        float64   // the progress of the newest notification
	news        Update    // the newest update of the work, as opposed to a wait or a status
	lastMessage string    // the message of the newest notification
	at          time.Time // when the newest notification was sent without an error

	mu     sync.Mutex // guards the fields below
	closed bool
	cancel context.CancelFunc // cancels the newest notification
}

// deliver sends a notification for a beat: with the fields of an *Update, with a pulse.Status as the message, or, for
// any other detail, without a message of its own. It sends nothing after shut.
func (r *reporter) deliver(detail any) {
	u, _ := detail.(*Update)
	status, stands := detail.(pulse.Status)
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
	message := u.Message
	switch {
	case stands: // a status, and not an update of the work
		message = string(status)
	case u.waiting != nil:
		message = u.waiting.unlike(r.lastMessage)
	default:
		r.news = *u
	}
	if message == "" {
		message = UpdateOf(r.cell.Words()).Message
	}
	message = texts.Cut(message) // clients may fail on very long messages
	r.lastMessage = message
	if r.send(ctx, Notification{ProgressToken: r.token, Progress: progress, Total: finite(u.Total), Message: message}) == nil {
		r.at = time.Now()
	}
}

// pending returns the newest update of the work if it has not been sent, and otherwise nil. An update from before a
// wait stays pending during the wait.
func (r *reporter) pending() *Update {
	u, _ := r.cell.Lasting().(*Update)
	if u == nil || u.waiting != nil || same(*u, r.news) {
		return nil
	}
	return u
}

// same reports whether a == b, except that NaN equals NaN.
func same(a, b Update) bool {
	eq := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return eq(a.Progress, b.Progress) && eq(a.Total, b.Total) && a.Message == b.Message && a.waiting == b.waiting
}

// next returns the progress to send for p, which is larger than the last. It returns false if there is no larger finite
// number.
func (r *reporter) next(p float64) (float64, bool) {
	if math.IsNaN(p) || math.IsInf(p, 0) {
		p = r.last
	}
	if r.sent && p <= r.last {
		p = Step(r.last)
	}
	if math.IsInf(p, 0) {
		return 0, false
	}
	r.sent, r.last = true, p
	return p, true
}

// Step returns the progress to send after p if there is nothing new to report, because MCP requires each
// notification to have a larger progress than the one before. The result is the next multiple of 1e-6: so small a
// step shows no work that was not done, and the number has few digits. Above 9e9 and below -9e9, where a float64
// cannot hold all of these multiples, the result is the next larger float64. Step is for programs that send
// notifications themselves; [Start] calls it already.
//
// After the largest number and +Inf, Step returns +Inf, and after NaN it returns NaN. Neither can be sent.
func Step(p float64) float64 {
	// A step of 1 would make a client that shows "7 of 10" show work that was not done. Adding 1e-6 each time
	// would accumulate rounding errors, and clients would show all of their digits.
	const perUnit, exact = 1e6, 1 << 53
	n := math.Floor(p * perUnit)
	if !(math.Abs(n) < exact) {
		return math.Nextafter(p, math.Inf(1))
	}
	next := (n + 1) / perUnit
	if next <= p { // the product was rounded down
		next = (n + 2) / perUnit
	}
	return next
}

// finish waits for the notification that is being sent, sends the last update if it is pending, and shuts the reporter.
// Unless it has given up a notification, it returns no earlier than answerDelay after the last one was sent.
// running is closed when the notification has been sent; nil means that none is being sent.
func (r *reporter) finish(running <-chan struct{}) {
	defer r.shut()
	if r.flush(running) && !r.at.IsZero() {
		time.Sleep(answerDelay - time.Since(r.at))
	}
}

// flush waits for the notification that is being sent, and sends the last update if it is pending. It returns false if
// it has given up a notification.
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

// wait waits for done until timer fires, and reports whether done was closed in time. If not, wait shuts the reporter,
// and waits up to giveUpWait for the notifier to return.
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
