package stream

// AnyEvent returns true. As the Life of a [Transport], it makes every event renew the limits, with or
// without data, but no comment and no part of an event.
func AnyEvent(Event) bool { return true }

// DataEvent reports whether e has data and its name is not that of a keep-alive: ping, keepalive,
// keep-alive or heartbeat. As the Life of a [Transport], it finds a stream that sends nothing but
// keep-alives, such as a language model that is stuck.
func DataEvent(e Event) bool {
	switch e.Name {
	case "ping", "keepalive", "keep-alive", "heartbeat":
		return false
	}
	return len(e.Data) > 0
}

// A judge decides which chunks of an event stream are signs of life. The nil judge takes every one.
type judge struct {
	life  func(Event) bool
	split splitter
	lost  bool // an event was too large, so there is no telling where the next one begins
}

// maxJudged is the largest event that a judge keeps to look at, in bytes.
const maxJudged = 1 << 20

func newJudge(life func(Event) bool) *judge {
	if life == nil {
		return nil
	}
	j := &judge{life: life, split: splitter{max: maxJudged, parse: true}}
	j.split.connect()
	return j
}

// signs returns the number of signs of life in a chunk.
func (j *judge) signs(chunk []byte) (n int) {
	if j == nil || j.lost {
		return 1
	}
	_, ok := j.split.feed(nil, chunk)
	for _, e := range j.split.parsed {
		if j.life(e) {
			n++
		}
	}
	clear(j.split.parsed) // of what Events may have kept
	j.split.parsed = j.split.parsed[:0]
	if !ok {
		j.lost, j.split = true, splitter{}
		n++
	}
	return n
}
