package procgroup

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// readSize is how much is read at a time, and pipeSize what the pipe of a command that
// writes faster than it is read is enlarged to. Together they make a flood about as
// fast as the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// buffers are shared by all commands: one is taken when there is something to read, so
// that a command that waits has none.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// output collects both streams of a command.
type output struct {
	monitor *heartbeat.Monitor
	streams [2]stream
	live    *live
	sinks   []*sink

	mu     sync.Mutex // guards the rings and the order
	order  order
	closed bool // the result has been made

	running atomic.Int32
	done    chan struct{} // closed when both streams have ended
	giveUp  chan struct{} // closed when sinks are not waited for any more
}

// A stream is read from the pipe to the rings, the sink and the callback.
type stream struct {
	r, w    *os.File
	ring    ring
	sink    *sink
	sunk    chan struct{}
	sinking atomic.Bool // waiting for the sink, not for the pipe
	ended   atomic.Bool // the pipe has no writer any more
	large   bool        // the pipe has been enlarged, as far as possible
}

func newOutput(maxOutput int) (*output, error) {
	o := &output{done: make(chan struct{}), giveUp: make(chan struct{})}
	o.order.max = maxOutput
	for i := range o.streams {
		s := &o.streams[i]
		var err error
		if s.r, s.w, err = os.Pipe(); err != nil {
			o.closePipes()
			return nil, err
		}
		s.ring.max = maxOutput
	}
	return o, nil
}

// start begins to read, once the command has the other ends.
func (o *output) start() {
	o.closeWriters()
	o.running.Store(int32(len(o.streams)))
	for i := range o.streams {
		go o.collect(Stream(i))
	}
}

func (o *output) closeWriters() {
	for i := range o.streams {
		if w := o.streams[i].w; w != nil {
			w.Close()
		}
	}
}

func (o *output) closeReaders() {
	for i := range o.streams {
		if r := o.streams[i].r; r != nil {
			r.Close()
		}
	}
}

func (o *output) closePipes() {
	o.closeWriters()
	o.closeReaders()
}

// collect reads a stream until it ends or is closed.
func (o *output) collect(id Stream) {
	s := &o.streams[id]
	defer func() {
		if o.live != nil {
			o.live.add(id, nil, true)
		}
		if o.running.Add(-1) == 0 {
			close(o.done)
		}
	}()
	reader, err := newPipeReader(s.r)
	if err != nil {
		return
	}
	for {
		buf, n, err := reader.read()
		if n > 0 {
			o.monitor.Beat()
			if !s.large && n >= enlargeAt {
				s.large = true
				enlargePipe(s.r)
			}
			if !o.take(id, buf[:n]) {
				buf = nil
			}
		}
		if buf != nil {
			buffers.Put(buf)
		}
		if n == 0 {
			s.ended.Store(err == nil)
			return
		}
	}
}

// take hands p on. It reports whether p may be used again.
func (o *output) take(id Stream, p []byte) (free bool) {
	s := &o.streams[id]
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return true
	}
	s.ring.write(p)
	o.order.add(int(id), p)
	o.mu.Unlock()
	if o.live != nil {
		o.live.add(id, p, false)
	}
	if s.sink == nil {
		return true
	}
	s.sinking.Store(true)
	defer s.sinking.Store(false)
	if free = s.sink.put(p, s.sunk, o.giveUp); !free {
		s.sink = nil
	}
	return free
}

// wait waits until both streams have ended, or the time has come.
func (o *output) wait(until time.Time) bool {
	select {
	case <-o.done:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-o.done:
		return true
	case <-timer.C:
		return false
	}
}

// sinking reports whether a sink is what is waited for.
func (o *output) sinking() bool {
	return o.streams[0].sinking.Load() || o.streams[1].sinking.Load()
}

// held reports whether some process still has a stream open.
func (o *output) held() bool {
	return !o.streams[0].ended.Load() || !o.streams[1].ended.Load()
}

// finish ends the collection: sinks that are still busy get no more, what is in the
// pipes is read until the given time, and the pipes are closed.
func (o *output) finish(until time.Time) (held bool) {
	close(o.giveUp)
	o.wait(until)
	held = o.held()
	o.closeReaders()
	// The readers end now; where a system cannot interrupt a read they are left.
	o.wait(time.Now().Add(closeTime))
	for _, s := range o.sinks {
		s.close()
	}
	if o.live != nil {
		o.live.close()
	}
	return held
}

// failure is what went wrong with the caller's writers.
func (o *output) failure() error {
	var errs []error
	for _, s := range o.sinks {
		errs = append(errs, s.failure())
	}
	return errors.Join(errs...)
}

// results gives what was collected. stopped says that the command did not end by
// itself.
func (o *output) results(stopped bool) (stdout, stderr, combined Output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	var kept [2][]byte
	var open [2]bool
	var outs [2]Output
	for i := range o.streams {
		s := &o.streams[i]
		b := s.ring.bytes()
		kept[i] = b
		outs[i] = Output{
			Total: s.ring.total, Dropped: s.ring.total - int64(len(b)),
			data: func() []byte { return b },
		}
		if open[i] = stopped || !s.ended.Load(); open[i] {
			outs[i].cut = unfinished(b)
		}
	}
	order := &o.order
	cut := order.flush(open)
	combined = Output{
		Total: order.total, Dropped: order.total - int64(order.kept),
		data: sync.OnceValue(func() []byte { return order.merge(kept) }), cut: cut,
	}
	return outs[0], outs[1], combined
}
