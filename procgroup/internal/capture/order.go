package capture

import "math"

// An order remembers how the two streams took turns, so that the combined output can be
// put together from their rings: its last max bytes are, stream by stream, among the
// last max bytes of each. That saves a copy of every byte, and a third ring.
//
// It is a list of lengths, for the streams alternately. The worst case, single bytes
// that alternate, takes four bytes of memory for each byte kept.
type order struct {
	max   int
	total int64
	kept  int      // the sum of runs
	runs  []uint32 // the dropped ones have been cut from the front
	first int      // the stream that runs[0] is of
	part  [2][]byte
}

// add records that stream s has brought p. Bytes at the end of p that begin a character
// wait until the rest is there, so that the other stream does not get into its middle.
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

// flush records what waits, last of all that of streams that are open: whose end is not
// the writer's, because it was killed or the pipe closed. It returns how much that is.
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
	n = min(n, o.max) // of more, the last max are kept anyway
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

// merge puts the combined output together from what was kept of the streams.
func (o *order) merge(streams [2][]byte) []byte {
	var n [2]int
	for i, r := range o.runs {
		n[(o.first+i)&1] += int(r)
	}
	for s, b := range streams {
		if n[s] == o.kept {
			return b[len(b)-n[s]:] // the other one has nothing in it
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
