package adapter

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// methodCancelled is the notification with which a client cancels a request.
const methodCancelled = "notifications/cancelled"

// maxCancelled bounds the messages in which Cancelled looks.
const maxCancelled = 64 << 10

// Cancelled reads a notifications/cancelled: the id of the request, an int64 or a string, and the cause with which to
// abort its call. ok is false if the message is not a notifications/cancelled, names no request, or has more than 64
// KiB.
func Cancelled(message []byte) (id any, cause *toolcall.CancelledError, ok bool) {
	if len(message) > maxCancelled || !bytes.Contains(message, []byte(methodCancelled)) {
		return nil, nil, false
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
			Reason    json.RawMessage `json:"reason"` // a RawMessage, so that a reason that is not a string does not hide the id
		} `json:"params"`
	}
	if exact.Unmarshal(message, &m) != nil || m.Method != methodCancelled {
		return nil, nil, false
	}
	if n, ok := integer(string(m.Params.RequestID)); ok {
		id = n
	} else if text := new(string); json.Unmarshal(m.Params.RequestID, &text) == nil && text != nil {
		id = *text
	} else {
		return nil, nil, false
	}
	var reason string
	_ = json.Unmarshal(m.Params.Reason, &reason)
	return id, &toolcall.CancelledError{Reason: reason}, true
}

// integer returns the value of a JSON number without a fraction, however it is spelled: to the SDKs 1.0 is 1. It
// returns false if the number has a fraction, does not fit an int64, or has a point or an exponent and is not below
// 2^53.
func integer(number string) (int64, bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(number, 64)
	return int64(f), err == nil && math.Abs(f) < 1<<53 && f == math.Trunc(f)
}
