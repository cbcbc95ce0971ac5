package stream

// Split runs each connection's bytes through a splitter, in the given pieces, and gives
// what comes out and the last id.
func Split(limit int, conns ...[][]byte) (out []byte, id string, ok bool) {
	s := splitter{max: limit}
	for _, pieces := range conns {
		s.connect()
		for _, p := range pieces {
			if out, ok = s.feed(out, p); !ok {
				return out, s.id, false
			}
		}
	}
	return out, s.id, true
}
