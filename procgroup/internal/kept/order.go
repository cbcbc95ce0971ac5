package kept

import "math"

// An order records how the output of the two streams alternated, so that the combined output can be assembled from the
// bytes that were kept of each stream. That saves a copy of every byte and a third ring. It is possible because the
// first n bytes of the combined output are among the first n bytes of the streams, and the last n among the last n.
type order struct {
	headMax int   // how many bytes of the combined output are kept at the beginning
	max     int   // how many bytes of the combined output are kept at the end
	total   int64 // bytes of both streams
	head    runs
	tail    runs
	part    [2][]byte // by stream, an unfinished character that waits for its rest
}

// runs is a list of lengths of pieces of output, which come from the two streams alternately. In the worst case, single
// bytes that alternate, it takes four bytes of memory for each byte kept.
type runs struct {
	n     int // the sum of len
	len   []uint32
	first int // the stream of len[0]
}

// add records that p was read from stream s. An unfinished character at the end of p waits in o.part for its rest, so
// that output of the other stream is not inserted into it.
func (o *order) add(s int, p []byte) {
	o.total += int64(len(p))
	if o.max == 0 && o.headMax == 0 || len(p) == 0 {
		return
	}
	// A character has at most four bytes, so bytes that wait matter only if fewer than four follow.
	before := len(o.part[s])
	tail := p
	if before > 0 && len(p) < 4 {
		tail = append(o.part[s], p...)
	}
	n := Unfinished(tail)
	n = min(n, before+len(p))
	o.push(s, before+len(p)-n)
	o.part[s] = append(o.part[s][:0], tail[len(tail)-n:]...)
}

// flush records the bytes that wait in o.part, those of open streams last. A stream is open if its writer did not end
// it, because the writer was killed or the pipe was closed. flush returns the number of bytes of open streams that
// waited.
func (o *order) flush(open [2]bool) (cut int) {
	for _, last := range []bool{false, true} {
		for s := range o.part {
			if open[s] != last {
				continue
			}
			if last {
				cut += len(o.part[s])
			}
			o.push(s, len(o.part[s]))
			o.part[s] = nil
		}
	}
	return cut
}

// push records n bytes of stream s: first in the head, until that is full, then in the tail.
func (o *order) push(s, n int) {
	if room := min(o.headMax-o.head.n, n); room > 0 {
		o.head.push(s, room)
		n -= room
	}
	o.tail.push(s, min(n, o.max)) // only the last max bytes are kept
	o.tail.drop(o.tail.n - o.max)
}

func (r *runs) push(s, n int) {
	for left := uint64(n); left > 0; {
		if len(r.len) == 0 {
			r.first = s
		}
		last := len(r.len) - 1
		switch {
		case last < 0 || (r.first+last)&1 != s:
			r.len = append(r.len, 0)
		case r.len[last] == math.MaxUint32:
			r.len = append(r.len, 0, 0) // an empty run of the other stream, since the runs alternate
		}
		last = len(r.len) - 1
		step := min(left, uint64(math.MaxUint32-r.len[last]))
		r.len[last] += uint32(step)
		left -= step
	}
	r.n += n
}

// drop removes n bytes from the front.
func (r *runs) drop(n int) {
	for n > 0 {
		step := min(n, int(r.len[0]))
		r.len[0] -= uint32(step)
		r.n -= step
		n -= step
		if r.len[0] == 0 {
			r.len = r.len[1:]
			r.first ^= 1
		}
	}
}

// of returns how many of the bytes come from stream s.
func (r *runs) of(s int) (n int) {
	for i := (r.first ^ s) & 1; i < len(r.len); i += 2 {
		n += int(r.len[i])
	}
	return n
}

// merge returns the bytes of the runs. streams has, for each stream, its bytes from the first that the runs count, and
// may have more at the end.
func (r *runs) merge(streams [2][]byte) []byte {
	for s := range streams {
		if r.of(s) == r.n {
			return streams[s][:r.n] // all bytes come from this stream
		}
	}
	out := make([]byte, 0, r.n)
	for i, n := range r.len {
		s := (r.first + i) & 1
		out = append(out, streams[s][:n]...)
		streams[s] = streams[s][n:]
	}
	return out
}

// merge returns the head and the tail of the combined output that were kept. It takes the head from heads, the first
// bytes of the streams, and the tail from tails, their last bytes.
func (o *order) merge(heads, tails [2][]byte) (head, tail []byte) {
	for s, b := range tails {
		tails[s] = b[len(b)-o.tail.of(s):]
	}
	return o.head.merge(heads), o.tail.merge(tails)
}
