package stream

// DataEvent reports whether e has data and is no keep-alive. As the Life of a [Transport], it finds a stream that sends
// nothing but keep-alives, as that of a stuck language model may. An event is a keep-alive in any of these cases:
//
//   - the name of the event, or the type, event, kind, object or message_type in its data, is ping, pong, keepalive,
//     heartbeat or noop, in whichever spelling (keep-alive, keep_alive, response.heartbeat);
//   - the data is empty, is one of these words, or is a comment: it begins with a colon;
//   - the event has no name or the name message, and its data is a JSON value with nothing in it, such as {} or null;
//   - the data is a chunk of a chat in which nothing is said: its choices are empty, or have nothing but a role and an
//     index, and it has neither usage nor an error.
//
// Data of more than 4 KiB is no keep-alive, unless the name of the event is. Comments are not events.
func DataEvent(e Event) bool { return len(e.Data) > 0 && !isKeepAlive(e) }

// A judge decides which chunks of an event stream are signs of life. For the nil judge, every chunk is one.
type judge struct {
	life func(Event) bool
	lexer
	collector
}

// maxJudged is the size in bytes of the largest event that a judge keeps and passes to life.
const maxJudged = 1 << 20

func newJudge(life func(Event) bool) *judge {
	if life == nil {
		return nil
	}
	j := &judge{life: life, lexer: lexer{most: maxJudged, skip: true}}
	j.to = &j.collector
	j.connect()
	return j
}

// signs returns the number of signs of life in a chunk. Each chunk of an event that is too large to be judged is a
// sign of life.
func (j *judge) signs(chunk []byte) (n int) {
	if j == nil {
		return 1
	}
	if j.large {
		n++
	}
	j.feed(chunk)
	n += j.skipped
	j.skipped = 0
	events := j.take()
	for _, e := range events {
		if j.life(e) {
			n++
		}
	}
	clear(events) // otherwise the buffer would keep their data in memory
	return n
}
