package mcpgo

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// mcp-go accepts only a CallToolResult from a tool, and only an error from a hook. This package returns
// any other answer, such as the handle of a task, inside a stand-in: a result, or an error of a hook. When
// mcp-go writes the stand-in, the wire replaces it by the answer. mcp-go still checks the session, the
// headers and the version of every request.

// standInKey returns the key under which a stand-in holds the answer. The key is random and never sent, so that neither
// a tool nor a server behind a tool can forge a stand-in.
var standInKey = sync.OnceValue(func() string { return "io.github.tooldeadline/" + rand.Text() })

// A reply is the answer to a request. It has either a result or an error.
type reply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// A standIn is the error with which a hook answers a request. Its text holds the answer.
type standIn struct{ reply }

func (s *standIn) Error() string {
	text, err := json.Marshal(s.reply)
	if err != nil {
		return err.Error()
	}
	return standInKey() + string(text)
}

// standInResult returns a result that stands for r, with r in its _meta.
func standInResult(r reply) *mcp.CallToolResult {
	meta := new(mcp.Meta)
	meta.SetMetaField(standInKey(), r)
	return &mcp.CallToolResult{Result: mcp.Result{Meta: meta}, Content: []mcp.Content{}}
}

// exchange returns p, a message or an event with a message, with a stand-in replaced by the answer that it holds. It
// returns p itself if p has no stand-in.
func exchange(p []byte) []byte {
	key := standInKey()
	start, end := bytes.IndexByte(p, '{'), bytes.LastIndexByte(p, '}')
	if start < 0 || end < start || !bytes.Contains(p, []byte(key)) {
		return p
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"result"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(p[start:end+1], &m) != nil {
		return p
	}
	var r reply
	said, ok := m.Result.Meta[key]
	if !ok {
		said, ok = bytes.CutPrefix([]byte(m.Error.Message), []byte(key))
	}
	if !ok || json.Unmarshal(said, &r) != nil {
		return p
	}
	message, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		reply
	}{mcp.JSONRPC_VERSION, m.ID, r})
	if err != nil {
		return p
	}
	return append(append(append(make([]byte, 0, start+len(message)+len(p)-end), p[:start]...), message...), p[end+1:]...)
}

// writeExchanged writes exchange(p). As io.Writer requires for p, it returns len(p) if everything was written, and
// never more.
func writeExchanged(w io.Writer, p []byte) (int, error) {
	q := exchange(p)
	n, err := w.Write(q)
	if err == nil && n == len(q) {
		return len(p), nil
	}
	return min(n, len(p)), err
}
