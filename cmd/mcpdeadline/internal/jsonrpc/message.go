package jsonrpc

import (
	"encoding/json"
	"errors"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A Message is a JSON-RPC message with the fields that the proxy needs. It is passed on as the bytes
// that were received. A line that is not a message, or not even JSON, has none of the fields. For one of a
// server, see [Sift].
type Message struct {
	Raw []byte // without the line ending; never changed

	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	Renewed bool // it has been sent again, with a new session

	// About is the id of the host's request that the message belongs to, or "" if the server's
	// transport does not tell.
	About string
	// Ambiguous is the error of a message in which readers may find different values for a key of ours.
	// Such a message is not passed on: what the proxy reads is not what the reader would act on.
	Ambiguous error
	// fields is set by Fields.
	fields *Fields
}

// Parse parses line, which it keeps.
func Parse(line []byte) *Message {
	m := new(Message)
	if err := adapter.Unmarshal(line, m); errors.As(err, new(*adapter.AmbiguousError)) {
		m.Ambiguous = err
	} else if err != nil {
		*m = Message{}
	}
	m.Raw = line
	return m
}

// IsRequest reports whether the message wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether it has a method and wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether it is an answer.
func (m *Message) IsResponse() bool {
	return m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
}

// WithID returns a copy of the message with another id.
func (m *Message) WithID(id string) *Message {
	out := Parse(With(m.Raw, json.RawMessage(id), "id"))
	out.ID, out.About = json.RawMessage(id), m.About
	return out
}

// WithMeta returns a copy of a request with a value in its _meta. What was read of its params is not read again.
func (m *Message) WithMeta(key string, v any) *Message {
	params := m.Fields()
	out := Parse(With(m.Raw, v, "params", "_meta", key))
	out.ID, out.About, out.Renewed, out.fields = m.ID, m.About, m.Renewed, params // the id as the host wrote it: encoding has escaped a <
	return out
}
