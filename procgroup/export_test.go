package procgroup

import "time"

// What the tests of the rings need to see.

type (
	Ring  = ring
	Order = order
)

func NewRing(max int) *Ring             { return &ring{max: max} }
func (r *ring) Write(p []byte)          { r.write(p) }
func (r *ring) Bytes() []byte           { return r.bytes() }
func (r *ring) Total() int64            { return r.total }
func NewOrder(max int) *Order           { return &order{max: max} }
func (o *order) Add(s Stream, p []byte) { o.add(int(s), p) }
func (o *order) Merge(streams [2][]byte) []byte {
	o.flush([2]bool{})
	return o.merge(streams)
}

// Text is what Output.String makes of b.
func Text(b []byte, dropped int64, open bool) string {
	o := Output{Total: int64(len(b)) + dropped, Dropped: dropped, data: func() []byte { return b }}
	if open {
		o.cut = unfinished(b)
	}
	return o.String()
}

// Live is what WithOutput's callback is called by.
type Live = live

func NewLive(fn func(Chunk)) *Live           { return newLive(fn, func(error) {}) }
func (l *live) Add(s Stream, p []byte)       { l.add(s, p, false) }
func (l *live) Finish(until time.Time) error { return l.finish(until) }
