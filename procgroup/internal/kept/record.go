// Package kept keeps the first and the last bytes of the two output streams of a command, and of both together, and
// says what is left out between them.
package kept

import (
	"math"
	"sync"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// Unlimited is the number of last bytes that keeps everything.
const Unlimited = math.MaxInt

// A Record keeps a part of the two streams. It is not safe for concurrent use.
type Record struct {
	head, max int // how many bytes are kept at the beginning and at the end
	streams   [2]ends
	order     order
}

// ends are the first and the last bytes of a stream.
type ends struct {
	head  []byte
	ring  ring  // of the bytes after the first ones
	lines int64 // number of line ends, if there is a head
}

// NewRecord returns a Record of the first and of the last bytes. If all are kept at the end, there is no beginning.
func NewRecord(first, last int) *Record {
	if last == Unlimited {
		first = 0
	}
	r := &Record{head: first, max: last}
	r.order.headMax, r.order.max = first, lookBack(last)
	for i := range r.streams {
		r.streams[i].ring.max = lookBack(last)
	}
	return r
}

// lookBack returns the size of a ring for the last most bytes: one more, because the byte before them
// shows whether they begin a line.
func lookBack(most int) int {
	if most == 0 || most == Unlimited {
		return most
	}
	return most + 1
}

// Add records that data was read from stream 0 or 1.
func (r *Record) Add(stream int, data []byte) {
	r.streams[stream].add(data, r.head)
	r.order.add(stream, data)
}

// add appends data to the head, until the head has most bytes, and writes the rest to the ring.
func (e *ends) add(data []byte, most int) {
	if most > 0 { // counting takes a tenth of the time in which a flood is read
		e.lines += countLines(data)
	}
	if n := min(most-len(e.head), len(data)); n > 0 {
		e.head = append(e.head, data[:n]...)
		data = data[n:]
	}
	e.ring.write(data)
}

func (e *ends) total() int64 { return int64(len(e.head)) + e.ring.total }

// Total returns how many bytes there were in a stream.
func (r *Record) Total(stream int) int64 { return r.streams[stream].total() }

// Sum returns how many bytes there were in both streams.
func (r *Record) Sum() int64 { return r.order.total }

// Outputs returns what was kept, to be shown on a screen. Nothing may be added afterwards. A stream is open if its
// writer did not end it: an unfinished character at its end then counts as cut.
func (r *Record) Outputs(open [2]bool, shown screen.Config) (stdout, stderr, combined Output) {
	var heads, tails [2][]byte
	var kept [2]Output
	var lines int64
	for i := range r.streams {
		e := &r.streams[i]
		heads[i], tails[i] = e.head, e.ring.bytes()
		k := newOutput(e.total(), e.lines, e.head, tails[i], r.max)
		if k.Dropped == 0 {
			tails[i] = k.Bytes() // the tail of both may begin in the head of one
		}
		if open[i] {
			k.cut = Unfinished(k.Bytes())
		}
		k.shown = shown
		kept[i] = k
		lines += e.lines
	}
	order := &r.order
	for _, k := range kept {
		if k.Total == order.total {
			return kept[0], kept[1], k // all of it is from this stream
		}
	}
	cut := order.flush(open)
	join := func() Output {
		head, tail := order.merge(heads, tails)
		k := newOutput(order.total, lines, head, tail, r.max)
		k.cut, k.shown = cut, shown
		return k
	}
	if int64(order.head.n)+int64(order.tail.n) < order.total || order.tail.n > r.max {
		return kept[0], kept[1], join()
	}
	// The streams are put together only if the combined output is asked for.
	return kept[0], kept[1], Output{Total: order.total, data: sync.OnceValue(func() []byte { return join().Bytes() }), cut: cut, shown: shown}
}
