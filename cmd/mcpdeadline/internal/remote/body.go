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
	maxSaid   = 4 << 10         // bytes that are read of an answer that is not a message
	TextLimit = 2 * time.Second // how long the rest of such an answer may take

	acceptLimit = time.Minute // how long the server may take to accept what needs no answer
)

// isEvents reports whether a response says that it is a stream of events.
func isEvents(res *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// The kinds of a body. A server that declares another type than it sends is understood.
const (
	asText = iota
	asJSON
	asEvents
)

// kindOf waits for the first byte of a body that is no white space.
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
	return asJSON // white space that keeps the connection open
}

// head returns what is kept of something that is not a message.
func head(data []byte) string { return string(data[:min(len(data), maxSaid)]) }
