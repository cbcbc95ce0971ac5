package stream

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A watch is the execution of one stream: the engine of package timeout with a function
// that waits for the end of the stream. A chunk is a beat, and the time in which nobody
// waits for one is a hold.
//
// It is not nested in the execution around ctx, although the chunks beat there too: the
// holds would go up as well, and suspend the idle check of a tool that is stuck between
// two reads.
type watch struct {
	ctx   context.Context // over when the stream is stopped or has ended
	cell  *pulse.Cell     // nil if it was over from the start
	outer *pulse.Cell     // of the execution around, if there is one

	end  func()        // says that the stream has ended by itself
	over chan struct{} // closed when err is there
	err  error         // what stopped the stream, nil if nothing did
}

// begin starts the watch; the limit runs.
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

	started := make(chan context.Context, 1) // nobody may be left to receive it
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
		// Both may be ready. And a function that has not come as far as to say that it was
		// called, before a limit and a grace of next to nothing were over, may do so still.
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

// stopped returns the *timeout.Error if a limit or the caller has stopped the stream, and
// nil as long as it runs or when it has ended by itself.
func (w *watch) stopped() error {
	if w.ctx.Err() == nil {
		return nil
	}
	<-w.over // at once: the function waits for its context
	return w.err
}

// chunk records a sign of life, here and in the execution around.
func (w *watch) chunk() {
	w.cell.Beat()
	w.outer.Beat()
}

// resume begins the time in which silence counts: somebody waits for a chunk.
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
