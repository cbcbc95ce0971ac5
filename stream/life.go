package stream

// AnyEvent returns true. As the Life of a [Transport], it makes every event renew the limits, with or
// without data, but no comment and no part of an event.
func AnyEvent(Event) bool { return true }

// DataEvent reports whether e has data and is no keep-alive. As the Life of a [Transport], it finds a stream that sends
// nothing but keep-alives, such as a language model that is stuck. All forms of a keep-alive count alike:
//
//   - the name of the event, or the type, event, kind, object or message_type in its data, is ping, pong, keepalive,
//     heartbeat or noop, in whichever spelling (keep-alive, keep_alive, response.heartbeat);
//   - the data is empty, is one of these words, or is a comment: it begins with a colon;
//   - the data is a chunk of a chat in which nothing is said: its choices are empty, or have nothing but a role and an
//     index, and it has neither usage nor an error.
//
// Comments are no events.
func DataEvent(e Event) bool { return len(e.Data) > 0 && !isKeepAlive(e) }

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
