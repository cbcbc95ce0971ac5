package stream

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A watch is the execution of one stream: it runs the engine of package timeout with a function
// that waits for the end of the stream. A chunk is a beat, and the time in which no Read waits is a
// hold.
//
// It is not nested in the enclosing execution, although the chunks beat there too: the holds would
// reach that execution as well, and suspend the idle check of a tool that is stuck between two
// reads.
type watch struct {
	ctx   context.Context // ends when the stream is stopped or has ended
	cell  *pulse.Cell     // nil if the stream was stopped before it began
	outer *pulse.Cell     // cell of the enclosing execution, or nil

	end  func()        // reports that the stream has ended by itself
	over chan struct{} // closed when err is set
	err  error         // what stopped the stream, or nil
}

// begin starts the watch, with the limit running.
func begin(ctx context.Context, idle time.Duration, opts []timeout.Option) *watch {
	w := &watch{outer: pulse.Of(ctx), over: make(chan struct{})}
	ended := make(chan struct{})
	w.end = sync.OnceFunc(func() { close(ended) })
	if idle == 0 {
		idle = timeout.UnboundedTotal().Idle
	}
	all := []timeout.Option{timeout.Config{Idle: max(idle, 0)}}
	if c := w.outer.Clock(); c != nil {
		all = append(all, timeout.WithClock(c))
	}
	all = append(all, opts...)

	started := make(chan context.Context, 1) // buffered, since begin may no longer receive from it
	go func() {
		defer close(w.over)
		w.err = timeout.Run(pulse.Mute(ctx), func(ctx context.Context) error {
			started <- ctx
			select {
			case <-ended:
			case <-ctx.Done():
			}
			return nil
		}, all...)
	}()
	select {
	case w.ctx = <-started:
	case <-w.over:
		// Both may be ready. And if a limit and a grace of next to nothing were over before the
		// function could send its context, it may still do so.
		select {
		case w.ctx = <-started:
		default:
			var cancel context.CancelFunc
			w.ctx, cancel = context.WithCancel(ctx)
			cancel()
			return w
		}
	}
	w.cell = pulse.Of(w.ctx)
	return w
}

// stopped returns the *timeout.Error if a limit or the caller has stopped the stream. It returns
// nil while the stream runs and when it has ended by itself.
func (w *watch) stopped() error {
	if w.ctx.Err() == nil {
		return nil
	}
	<-w.over // returns at once: the function waits for its context
	return w.err
}

// chunk records a sign of life, here and in the enclosing execution.
func (w *watch) chunk() {
	w.cell.Beat()
	w.outer.Beat()
}

// resume begins the time in which silence counts: a Read waits for a chunk.
func (w *watch) resume() {
	if w.cell != nil {
		w.cell.Resume()
	}
}

// suspend ends that time.
func (w *watch) suspend() {
	if w.cell != nil {
		w.cell.Suspend()
	}
}
