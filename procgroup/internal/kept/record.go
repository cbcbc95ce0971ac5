// Package kept keeps the first and the last bytes of the two output streams of a command, and of their combined output,
// and counts what is left out between them.
package kept

import (
	"math"
	"sync"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// Unlimited, as the number of last bytes to keep, keeps everything.
const Unlimited = math.MaxInt

// A Record keeps a part of the output of two streams. It is not safe for concurrent use.
type Record struct {
	head, max int // how many bytes are kept at the beginning and at the end
	streams   [2]ends
	order     order
}

// ends are the first and the last bytes of a stream.
type ends struct {
	head  []byte
	ring  ring  // gets the bytes that do not fit in head
	lines int64 // number of line ends in the stream; not counted if Record.head is 0
}

// NewRecord returns a Record that keeps the given numbers of first and of last bytes of each stream and of the combined
// output. If last is Unlimited, everything counts as last bytes, and first has no effect.
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

// lookBack returns the size of a ring for the last most bytes: one more than most, because the byte before them shows
// whether they begin a line. It returns 0 and Unlimited unchanged.
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
	if most > 0 { // not otherwise: counting takes a tenth of the time of reading
		e.lines += countLines(data)
	}
	if n := min(most-len(e.head), len(data)); n > 0 {
		e.head = append(e.head, data[:n]...)
		data = data[n:]
	}
	e.ring.write(data)
}

func (e *ends) total() int64 { return int64(len(e.head)) + e.ring.total }

// Sum returns the number of bytes that were added to both streams.
func (r *Record) Sum() int64 { return r.order.total }

// Outputs returns the output that was kept. Nothing may be added afterwards. open says which streams their writer did
// not end: an unfinished character at the end of such a stream counts as cut. shown configures Output.Text.
func (r *Record) Outputs(open [2]bool, shown screen.Config) (stdout, stderr, combined Output) {
	var heads, tails [2][]byte
	var kept [2]Output
	var lines int64
	for i := range r.streams {
		e := &r.streams[i]
		heads[i], tails[i] = e.head, e.ring.bytes()
		k := newOutput(e.total(), e.lines, e.head, tails[i], r.max)
		if k.Dropped == 0 {
			tails[i] = k.Bytes() // the combined tail may begin in the head of a stream
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
			return kept[0], kept[1], k // all output comes from this stream
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
	// Nothing was dropped. The streams are merged only when Bytes of the combined output is first called.
	return kept[0], kept[1], Output{Total: order.total, data: sync.OnceValue(func() []byte { return join().Bytes() }), cut: cut, shown: shown}
}
