package progress

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// A Notification holds the params of a notifications/progress message. It marshals to exactly those
// params:
//
//	{"progressToken":"t1","progress":3,"total":10,"message":"main.go"}
type Notification struct {
	// ProgressToken is the token of the request, unchanged: a string, an integer of any type, a
	// float64, a json.Number or a json.RawMessage.
	ProgressToken any
	Progress      float64
	Total         float64 // omitted from the wire form unless it is finite and above 0
	Message       string  // omitted if empty
}

// MarshalJSON returns the wire form. It returns an error if the token is neither a string nor a
// number, or if the progress is not finite.
func (n Notification) MarshalJSON() ([]byte, error) {
	token, err := marshalToken(n.ProgressToken)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ProgressToken json.RawMessage `json:"progressToken"`
		Progress      float64         `json:"progress"`
		Total         float64         `json:"total,omitempty"`
		Message       string          `json:"message,omitempty"`
	}{token, n.Progress, finite(n.Total), n.Message})
}

// finite returns total, or 0 if total is not a finite number above 0. An SDK that does not use
// [Notification.MarshalJSON] could not marshal an infinite total, and would drop the whole notification.
func finite(total float64) float64 {
	if total > 0 && !math.IsInf(total, 0) {
		return total
	}
	return 0
}

// marshalToken returns the token unchanged. encoding/json would write a float64 of 1e21 with an
// exponent, which many parsers do not accept as an integer.
func marshalToken(token any) (json.RawMessage, error) {
	if f, ok := token.(float64); ok && f == math.Trunc(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
	}
	switch token.(type) {
	case json.Number, json.RawMessage:
	case json.Marshaler, encoding.TextMarshaler: // its method could block
		return nil, fmt.Errorf("progress: progressToken is a %T: want a string or a number", token)
	default:
		switch reflect.ValueOf(token).Kind() {
		case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface: // may contain one
			return nil, fmt.Errorf("progress: progressToken is a %T: want a string or a number", token)
		}
	}
	raw, err := json.Marshal(token)
	if err != nil {
		return nil, fmt.Errorf("progress: progressToken: %w", err)
	}
	if c := raw[0]; c != '"' && c != '-' && (c < '0' || c > '9') {
		return nil, fmt.Errorf("progress: progressToken=%.40s: want a string or a number", raw)
	}
	return raw, nil
}
