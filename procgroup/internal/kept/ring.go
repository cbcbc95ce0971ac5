package kept

// A ring keeps the last max bytes that were written to it. Its memory grows as bytes are written, up to max, so that a
// silent command costs nothing. Each byte is copied once when it is written, and again each time the ring grows.
type ring struct {
	max    int
	total  int64
	buf    []byte
	next   int      // index of the oldest byte in buf, once len(buf) is max
	blocks [][]byte // if max is Unlimited, the full blocks before buf
}

const (
	firstBlock = 4 << 10
	maxBlock   = 1 << 20
)

func (r *ring) write(p []byte) {
	r.total += int64(len(p))
	switch {
	case r.max == 0:
		return
	case r.max == Unlimited:
		r.add(p)
		return
	case len(p) >= r.max:
		r.buf = append(r.buf[:0], p[len(p)-r.max:]...)
		r.next = 0
		return
	}
	if room := r.max - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.grow(len(r.buf) + n)
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		p = p[n:]
		r.next += n
		if r.next == len(r.buf) {
			r.next = 0
		}
	}
}

// grow makes the capacity of buf at least n, and never more than max.
func (r *ring) grow(n int) {
	if n <= cap(r.buf) {
		return
	}
	bigger := make([]byte, len(r.buf), min(r.max, max(n, 2*cap(r.buf), firstBlock)))
	copy(bigger, r.buf)
	r.buf = bigger
}

// add appends p without a limit. It appends blocks instead of growing a buffer, because doubling a buffer of a gigabyte
// takes longer than receiving the gigabyte.
func (r *ring) add(p []byte) {
	for len(p) > 0 {
		if len(r.buf) == cap(r.buf) {
			if len(r.buf) > 0 {
				r.blocks = append(r.blocks, r.buf)
			}
			r.buf = make([]byte, 0, min(max(2*cap(r.buf), firstBlock), maxBlock))
		}
		n := min(len(p), cap(r.buf)-len(r.buf))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
}

// bytes returns the bytes that were kept, in one slice. No write may follow.
func (r *ring) bytes() []byte {
	switch {
	case len(r.blocks) > 0:
		all := make([]byte, 0, r.total)
		for _, b := range r.blocks {
			all = append(all, b...)
		}
		r.buf, r.blocks = append(all, r.buf...), nil
	case r.next > 0:
		r.buf = append(append(make([]byte, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
		r.next = 0
	}
	return r.buf
}
