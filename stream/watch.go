package stream

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A watch is the execution of one stream: it calls timeout.Run with a function that waits for the end of the stream.
// A chunk is a heartbeat of that execution, and while no Read waits, its idle check is held.
//
// The execution is not nested in the enclosing execution, although chunks are heartbeats of both: the holds would
// reach the enclosing execution as well, and suspend the idle check of a tool that is stuck between two reads.
type watch struct {
	ctx   context.Context // the context of the execution; it ends when the stream is stopped or has ended
	cell  *pulse.Cell     // nil if the stream was stopped before it began
	outer *pulse.Cell     // cell of the enclosing execution, or nil
	first *watch          // limits the wait for the first sign of life; nil after that, and if First is 0

	read   time.Duration // the instant at which the present Read began to wait, on the cell's scale
	silent time.Duration // the time that earlier Reads have waited since the last sign of life

	end  func()        // ends the execution because the stream has ended by itself
	over chan struct{} // closed when err is set
	err  error         // what stopped the stream, or nil
}

// begin starts a watch, whose limit is running on return. An idle of 0 means the default, and a negative one no
// limit. If first is not 0, it is the limit on the wait for the first sign of life. That wait is an execution nested
// in that of the stream, because the idle limit of an execution never changes. The idle check of the outer execution
// is held meanwhile.
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
	started := make(chan context.Context, 1) // buffered, because begin may have stopped receiving
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
						return before.err // the outcome is this error only if ctx has not ended
					}
					over = nil
				case <-ended:
					if over != nil { // the nested execution ends by itself and is not aborted
						before.end()
						<-over
						return before.err // not nil if its limit has fired at the same time
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
		// If started is not ready too, ctx had ended before, and the function was not called.
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

// active returns the watch whose limit is running: w.first until the first sign of life, and then w.
func (w *watch) active() *watch {
	if w.first != nil {
		return w.first
	}
	return w
}

// stopped returns the *timeout.Error of a stream that a limit or the caller has stopped. It returns nil if the stream
// is running or has ended by itself.
func (w *watch) stopped() error {
	if w.ctx.Err() == nil && (w.first == nil || w.first.ctx.Err() == nil) {
		return nil
	}
	<-w.over // soon: the function waits only for its context and for the end of the first watch, and then hooks run
	return w.err
}

// chunk records a sign of life in this execution and in the enclosing one. After the first sign of life, it switches
// to the limit of the stream.
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

// resume starts the idle check when a Read begins to wait for a chunk. Time that earlier Reads have waited since the
// last sign of life counts.
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

// suspend holds the idle check when a Read ends. If alive is false, there was no sign of life, and the time that the
// Read has waited counts in the next one.
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
