package jsonrpc

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A Message is a line of a peer with the fields of its JSON-RPC message that the proxy uses. The proxy forwards Raw
// unchanged. If the line is not a JSON object, only Raw is set. For a line of a server, see [Sift].
type Message struct {
	Raw []byte // without the line ending; never changed

	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	Renewed bool          // the message was sent before, in an earlier session; a refusal of it begins no new session
	Awaited time.Duration // how long an answer to this request of the proxy, or to the request that this cancels, is of use

	// About is the id of the host's request that the message belongs to, or "" if that is unknown, as with a server
	// over stdio.
	About string
	// Ambiguous, if it is not nil, says that parsers may find different values for a key that the proxy uses. The
	// proxy does not forward such a message, because the peer might act on another value than the proxy.
	Ambiguous error
	// fields is set by Fields.
	fields *Fields
}

// Fields holds the params of a host's message that the proxy uses.
type Fields struct {
	Name           string
	Arguments      json.RawMessage
	InputResponses map[string]json.RawMessage
	Task           json.RawMessage
	URI            string          `json:"uri"`
	TaskID         string          `json:"taskId"`
	RequestID      json.RawMessage `json:"requestId"`
	Client         Client          `json:"-"`
	Meta           Meta            `json:"_meta"`
}

// A Client is the clientInfo of initialize.
type Client struct{ Name, Version string }

// Meta holds the keys of _meta that the proxy uses.
type Meta struct {
	ProgressToken json.RawMessage
	Budget        json.RawMessage `json:"io.github.tooldeadline/budget"`
	Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities  struct {
		Extensions map[string]json.RawMessage
	} `json:"io.modelcontextprotocol/clientCapabilities"`
}

// Parse returns the message in line, and keeps line as Raw.
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

// IsRequest reports whether the message is a request: it has a method and an id. The id null counts as one.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message is a notification: it has a method and no id, not even null.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message is an answer: it has an id, a result or an error, and no method. A null counts
// as each of the three.
func (m *Message) IsResponse() bool {
	return m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
}
