package remote

import (
	"bufio"
	"bytes"
	"mime"
	"net/http"
	"time"
	"unicode"
)

const (
	maxSaid   = 4 << 10         // bytes that are read of a response that is not a message
	TextLimit = 2 * time.Second // how long the rest of such a response, or of a stream after the answer, may take

	AcceptLimit = time.Minute // how long the exchange of a message that needs no answer, or of a request of the proxy, may take
)

// isEvents reports whether the Content-Type of a response is text/event-stream.
func isEvents(res *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// The kinds of a body.
const (
	asText   = iota // anything else
	asJSON          // one message or a batch
	asEvents        // a stream of events
)

// kindOf skips white space and returns the kind of the rest of a body, because some servers send another type than they
// declare. declared says that the response is declared as a stream of events.
func kindOf(body *bufio.Reader, declared bool) int {
	r, err := ' ', error(nil)
	for err == nil && (unicode.IsSpace(r) || r == '\ufeff') { // a byte order mark, or what keeps the connection open
		r, _, err = body.ReadRune()
	}
	if err == nil {
		_ = body.UnreadRune()
		if r == '{' || r == '[' {
			return asJSON
		}
		begun, _ := body.Peek(body.Buffered())
		for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
			declared = declared || bytes.HasPrefix(begun, []byte(field))
		}
	}
	if declared {
		return asEvents
	}
	return asText
}

// head returns the first maxSaid bytes of data, as text.
func head(data []byte) string { return string(data[:min(len(data), maxSaid)]) }
