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
	first *watch          // limits the wait for the first sign of life; nil after it, or if there is none

	read   time.Duration // instant at which the present Read began to wait, on the cell's scale
	silent time.Duration // how long earlier Reads have waited since the last sign of life

	end  func()        // reports that the stream has ended by itself
	over chan struct{} // closed when err is set
	err  error         // what stopped the stream, or nil
}

// begin starts the watch, with the limit running. If first is not 0, it is the limit before the
// first sign of life. It needs an execution of its own within that of the stream, because the idle
// limit of an execution never changes; the outer one is held meanwhile.
func begin(ctx context.Context, idle, first time.Duration, opts []timeout.Option) *watch {
	w := &watch{outer: pulse.Of(ctx), over: make(chan struct{})}
	ended := make(chan struct{})
	w.end = sync.OnceFunc(func() { close(ended) })
	if idle == 0 {
		idle = timeout.UnboundedTotal().Idle
	}
	all := []timeout.Option{timeout.Config{Idle: max(idle, 0)}}
	all = append(all, opts...)

	var before *watch
	started := make(chan context.Context, 1) // buffered, since begin may no longer receive from it
	go func() {
		defer close(w.over)
		w.err = timeout.Run(pulse.Mute(ctx), func(ctx context.Context) error {
			var over chan struct{}
			if first != 0 {
				pulse.Of(ctx).Suspend()
				before = begin(ctx, first, 0, opts)
				over = before.over
			}
			started <- ctx
			for {
				select {
				case <-over:
					if before.err != nil {
						return before.err // if ctx has ended, the outcome is that of ctx
					}
					over = nil
				case <-ended:
					if over != nil { // the execution has ended as well, and is not aborted
						before.end()
						<-over
					}
					return nil
				case <-ctx.Done():
					return nil
				}
			}
		}, all...)
	}()
	select {
	case w.ctx = <-started:
	case <-w.over:
		// Both may be ready. Otherwise ctx had ended, and the function was never called.
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
	w.first = before
	return w
}

// active returns the watch whose limit runs.
func (w *watch) active() *watch {
	if w.first != nil {
		return w.first
	}
	return w
}

// stopped returns the *timeout.Error if a limit or the caller has stopped the stream. It returns
// nil while the stream runs and when it has ended by itself.
func (w *watch) stopped() error {
	if w.ctx.Err() == nil && (w.first == nil || w.first.ctx.Err() == nil) {
		return nil
	}
	<-w.over // returns at once: the function waits for its context, and for the end of the first watch
	return w.err
}

// chunk records a sign of life, here and in the enclosing execution.
func (w *watch) chunk() {
	w.active().cell.Beat()
	w.active().silent = 0
	w.outer.Beat()
	f := w.first
	if f == nil {
		return
	}
	f.end()
	if <-f.over; f.err == nil {
		w.first = nil
		w.cell.Resume()
	}
}

// resume begins the time in which silence counts: a Read waits for a chunk.
func (w *watch) resume() {
	w = w.active()
	if w.cell == nil {
		return
	}
	w.cell.Resume()
	w.read = w.cell.Now()
	if w.silent > 0 {
		w.cell.Backdate(w.silent)
	}
}

// suspend ends that time. Unless there was a sign of life, what has passed of it counts on with the
// next Read.
func (w *watch) suspend(alive bool) {
	w = w.active()
	if w.cell == nil {
		return
	}
	if !alive {
		w.silent += w.cell.Now() - w.read
	}
	w.cell.Suspend()
}
