package remote

import (
	"bufio"
	"bytes"
	"mime"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

const (
	maxSaid   = 4 << 10         // bytes that are read of a response that is not a message
	TextLimit = 2 * time.Second // how long the rest of such a response, or of a stream after the answer, may take

	AcceptLimit = time.Minute // how long the exchange of a message that needs no answer may take
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

// kindOf returns the kind of a body. It reads ahead up to the first byte that is not white space, because some servers
// send another type than they declare. declared says that the response is declared as a stream of events.
func kindOf(body *bufio.Reader, declared bool) int {
	for n := 1; n <= maxSaid; n++ {
		begun, err := body.Peek(n)
		if rest := bytes.TrimPrefix(begun, jsonrpc.ByteOrderMark); len(rest) < 3 && bytes.HasPrefix(jsonrpc.ByteOrderMark, rest) && err == nil {
			continue
		} else if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			if rest[0] == '{' || rest[0] == '[' {
				return asJSON
			}
			begun, _ = body.Peek(body.Buffered())
			for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
				declared = declared || bytes.HasPrefix(bytes.TrimPrefix(begun, jsonrpc.ByteOrderMark), []byte(field))
			}
		} else if err == nil {
			continue
		}
		if declared {
			return asEvents
		}
		return asText
	}
	if declared {
		return asEvents
	}
	return asJSON // the server sends white space, to keep the connection open, before a document
}

// head returns the first maxSaid bytes of data, as text.
func head(data []byte) string { return string(data[:min(len(data), maxSaid)]) }
