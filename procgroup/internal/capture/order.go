package capture

import "math"

// An order records how the two streams alternated, so that the combined output can be assembled
// from their rings: each of its last max bytes is among the last max bytes of its stream. That
// saves a copy of every byte and a third ring.
//
// It is a list of lengths that belong to the two streams alternately. In the worst case, single
// bytes that alternate, it takes four bytes of memory for each byte kept.
type order struct {
	max   int
	total int64
	kept  int      // the sum of runs
	runs  []uint32 // dropped bytes have been removed from the front
	first int      // the stream of runs[0]
	part  [2][]byte
}

// add records that p was read from stream s. An unfinished character at the end of p waits for its
// rest, so that output of the other stream is not inserted into it.
func (o *order) add(s int, p []byte) {
	o.total += int64(len(p))
	if o.max == 0 || len(p) == 0 {
		return
	}
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

// flush records the bytes that wait, those of open streams last. A stream is open if its writer did
// not end it, because the writer was killed or the pipe was closed. flush returns the number of
// bytes of open streams.
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

func (o *order) push(s, n int) {
	n = min(n, o.max) // only the last max bytes are kept
	for left := uint64(n); left > 0; {
		if len(o.runs) == 0 {
			o.first = s
		}
		last := len(o.runs) - 1
		switch {
		case last < 0 || (o.first+last)&1 != s:
			o.runs = append(o.runs, 0)
		case o.runs[last] == math.MaxUint32:
			o.runs = append(o.runs, 0, 0)
		}
		last = len(o.runs) - 1
		step := min(left, uint64(math.MaxUint32-o.runs[last]))
		o.runs[last] += uint32(step)
		left -= step
	}
	o.kept += n
	for o.kept > o.max {
		step := min(o.kept-o.max, int(o.runs[0]))
		o.runs[0] -= uint32(step)
		o.kept -= step
		if o.runs[0] == 0 {
			o.runs = o.runs[1:]
			o.first ^= 1
		}
	}
}

// merge assembles the combined output from the bytes that were kept of each stream.
func (o *order) merge(streams [2][]byte) []byte {
	var n [2]int
	for i, r := range o.runs {
		n[(o.first+i)&1] += int(r)
	}
	for s, b := range streams {
		if n[s] == o.kept {
			return b[len(b)-n[s]:] // all of it is from this stream
		}
		streams[s] = b[len(b)-n[s]:]
	}
	out := make([]byte, 0, o.kept)
	for i, r := range o.runs {
		s := (o.first + i) & 1
		out = append(out, streams[s][:r]...)
		streams[s] = streams[s][r:]
	}
	return out
}
