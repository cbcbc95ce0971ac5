package jsonrpc

import (
	"encoding/json"
	"errors"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A Message is a JSON-RPC message with the fields that the proxy needs. It is passed on as the bytes
// that were received. A line that is not a message, or not even JSON, has none of the fields. For a line of
// a server, see [Sift].
type Message struct {
	Raw []byte // without the line ending; never changed

	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	Renewed bool // the message has been sent again, in a new session

	// About is the id of the host's request that the message belongs to, or "" if the server's
	// transport does not tell.
	About string
	// Ambiguous is the error of a message in which readers may find different values for a key that is read here.
	// Such a message is not passed on: what the proxy reads is not what the reader would act on.
	Ambiguous error
	// fields is set by Fields.
	fields *Fields
}

// Fields holds what the proxy reads in the params of the host's messages.
type Fields struct {
	Name           string
	Arguments      json.RawMessage
	InputResponses map[string]json.RawMessage
	Task           json.RawMessage
	URI            string          `json:"uri"`
	TaskID         string          `json:"taskId"`
	RequestID      json.RawMessage `json:"requestId"`
	Client         struct {
		Name    string
		Version string
	} `json:"-"` // of initialize
	Meta struct {
		ProgressToken json.RawMessage
		Budget        json.RawMessage `json:"io.github.tooldeadline/budget"`
		Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities  struct {
			Extensions map[string]json.RawMessage
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
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

// IsNotification reports whether the message has a method and wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message is an answer.
func (m *Message) IsResponse() bool {
	return m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
}
