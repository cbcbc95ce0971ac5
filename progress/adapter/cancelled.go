package adapter

import (
	"bytes"
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// MethodCancelled is the notification with which a client cancels a request.
const MethodCancelled = "notifications/cancelled"

// Cancelled reads the params of [MethodCancelled]: the id of the request, an int64 or a string, and
// the cause with which to abort its call. ok is false if they name no request.
func Cancelled(params json.RawMessage) (id any, cause *toolcall.CancelledError, ok bool) {
	var p struct {
		RequestID any `json:"requestId"`
		Reason    any `json:"reason"` // one that is no text must not hide the id
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.UseNumber()
	if d.Decode(&p) != nil {
		return nil, nil, false
	}
	switch v := p.RequestID.(type) {
	case string:
		id = v
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return nil, nil, false
		}
		id = n
	default:
		return nil, nil, false
	}
	reason, _ := p.Reason.(string)
	return id, &toolcall.CancelledError{Reason: reason}, true
}

// maxCancelled bounds the messages in which CancelledIn looks.
const maxCancelled = 64 << 10

// CancelledIn does what [Cancelled] does for a whole message. ok is false for any other message,
// and for a message of more than 64 KiB.
func CancelledIn(message []byte) (id any, cause *toolcall.CancelledError, ok bool) {
	if len(message) > maxCancelled || !bytes.Contains(message, []byte(MethodCancelled)) {
		return nil, nil, false
	}
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || m.Method != MethodCancelled {
		return nil, nil, false
	}
	return Cancelled(m.Params)
}

// A CancelledReader gathers the bytes of a body that may be a message, for [CancelledIn]. Write to
// it the bytes that are read. Beyond 64 KiB it keeps nothing.
type CancelledReader struct{ read []byte }

// Write appends a copy of p, up to 64 KiB in all, and never fails.
func (r *CancelledReader) Write(p []byte) (int, error) {
	if len(r.read) <= maxCancelled {
		r.read = append(r.read, p[:min(len(p), maxCancelled+1-len(r.read))]...)
	}
	return len(p), nil
}

// Cancelled is [CancelledIn] for the bytes that have been written.
func (r *CancelledReader) Cancelled() (id any, cause *toolcall.CancelledError, ok bool) {
	return CancelledIn(r.read)
}
