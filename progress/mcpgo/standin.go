package mcpgo

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// mcp-go's methods and results are of fixed types, and none of them is a task. An answer for which
// it has no type leaves it as a stand-in: a result, or an error of a hook, with the answer in it.
// The wire, which all answers pass on their way out, puts the answer in its place. So mcp-go still
// judges every request: the session, the headers, the version.

// standInKey is the key under which a stand-in holds the answer. It is random, so that no tool, and no server behind
// a tool, can say something that passes for one, and it never goes out.
var standInKey = sync.OnceValue(func() string { return "io.github.tooldeadline/" + rand.Text() })

// A reply is the answer to a request: a result or an error.
type reply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// A standIn is the error of a hook that answers a request itself.
type standIn struct{ reply }

func (s *standIn) Error() string {
	text, err := json.Marshal(s.reply)
	if err != nil {
		return err.Error()
	}
	return standInKey() + string(text)
}

// standInResult returns the result that a tool returns in place of a reply that is not the result of a tool.
func standInResult(r reply) *mcp.CallToolResult {
	meta := new(mcp.Meta)
	meta.SetMetaField(standInKey(), r)
	return &mcp.CallToolResult{Result: mcp.Result{Meta: meta}, Content: []mcp.Content{}}
}

// exchange replaces the stand-in in a message, or in an event with a message, by the answer that it holds. It returns
// all else unchanged.
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

// writeExchanged writes p after exchange. Like a Write of p, it returns len(p) if everything was written.
func writeExchanged(w io.Writer, p []byte) (int, error) {
	q := exchange(p)
	n, err := w.Write(q)
	if err == nil && n == len(q) {
		return len(p), nil
	}
	return min(n, len(p)), err
}
