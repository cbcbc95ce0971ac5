package adapter

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// methodCancelled is the notification with which a client cancels a request.
const methodCancelled = "notifications/cancelled"

// Cancelled reads the params of notifications/cancelled: the id of the request, an int64 or a string, and
// the cause with which to abort its call. ok is false if they name no request.
func Cancelled(params json.RawMessage) (id any, cause *toolcall.CancelledError, ok bool) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    json.RawMessage `json:"reason"` // one that is no text must not hide the id
	}
	if exact.Unmarshal(params, &p) != nil || len(p.RequestID) == 0 {
		return nil, nil, false
	}
	if n, err := strconv.ParseInt(string(p.RequestID), 10, 64); err == nil {
		id = n
	} else if text := new(string); json.Unmarshal(p.RequestID, &text) == nil && text != nil {
		id = *text
	} else {
		return nil, nil, false
	}
	var reason string
	_ = json.Unmarshal(p.Reason, &reason)
	return id, &toolcall.CancelledError{Reason: reason}, true
}

// maxCancelled bounds the messages in which a CancelledReader looks.
const maxCancelled = 64 << 10

// A CancelledReader does what [Cancelled] does for a whole message. Write to it the bytes that are read. Beyond 64 KiB
// it keeps nothing.
type CancelledReader struct{ read []byte }

// Write appends a copy of p, up to 64 KiB in all, and never fails.
func (r *CancelledReader) Write(p []byte) (int, error) {
	if len(r.read) <= maxCancelled {
		r.read = append(r.read, p[:min(len(p), maxCancelled+1-len(r.read))]...)
	}
	return len(p), nil
}

// Cancelled does what the function Cancelled does for the params of the message that has been written. ok is false for
// any other message, and for one of more than 64 KiB.
func (r *CancelledReader) Cancelled() (id any, cause *toolcall.CancelledError, ok bool) {
	if len(r.read) > maxCancelled || !bytes.Contains(r.read, []byte(methodCancelled)) {
		return nil, nil, false
	}
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if exact.Unmarshal(r.read, &m) != nil || m.Method != methodCancelled {
		return nil, nil, false
	}
	return Cancelled(m.Params)
}
