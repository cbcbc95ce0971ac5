package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// body reads the message in an HTTP request, as one line. If it cannot, it answers the request, unless the client has
// disconnected, and returns false. The caller must call give when it no longer needs the memory of the line.
func (f *Front) body(rw http.ResponseWriter, r *http.Request) (line []byte, give func(), ok bool) {
	most := int64(f.Max)
	if f.known(r) == nil && r.Header.Get("Mcp-Protocol-Version") < "2026-07-28" {
		most = min(most, maxUnknown)
	}
	size := most
	if r.ContentLength >= 0 {
		size = r.ContentLength
	}
	if size > most {
		refuse(rw, http.StatusRequestEntityTooLarge, nil, jsonrpc.InvalidRequest, fmt.Sprintf("a message of %d bytes, where %d are allowed", size, most))
		return nil, func() {}, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), ReadLimit)
	defer cancel()
	if f.reading.Acquire(ctx, size) != nil {
		rw.Header().Set("Retry-After", "1")
		refuse(rw, http.StatusServiceUnavailable, nil, jsonrpc.InternalError, "too many large messages at the same time")
		return nil, func() {}, false
	}
	give = sync.OnceFunc(func() { f.reading.Release(size) })
	// The request may have waited for memory until now, so the limit on reading begins again.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(ReadLimit))
	var text bytes.Buffer
	text.Grow(int(min(size, 64<<10)) + bytes.MinRead)
	_, err := text.ReadFrom(http.MaxBytesReader(rw, r.Body, most))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(rw, http.StatusRequestEntityTooLarge, nil, jsonrpc.InvalidRequest, err.Error())
		return nil, give, false
	} else if err != nil {
		return nil, give, false // the client has gone
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(text.Bytes(), jsonrpc.ByteOrderMark))
	jsonrpc.OneLine(line)
	return line, give, true
}
