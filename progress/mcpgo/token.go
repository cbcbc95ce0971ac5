package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// token returns the request's progress token, or nil if the request has none or the token may have been rounded: mcp-go
// decodes numbers to float64, and from 2^53 on one float64 stands for several integers. A rounded token could be the
// token of another request. With [Install], tokens has restored the exact number before.
func token(m *mcp.Meta) any {
	if m == nil {
		return nil
	}
	if f, ok := m.ProgressToken.(float64); ok && !exact(f) {
		return nil
	}
	return m.ProgressToken
}

// tokens holds progress tokens that mcp-go is about to round, from the arrival of a request until mcp-go has decoded
// it.
type tokens struct {
	mu    sync.Mutex
	exact map[string]json.Number // by session and request id
}

// maxTokens bounds the number of tokens, because some requests never reach a tool. At the bound all tokens are dropped,
// and the calls that they belong to send no notifications.
const maxTokens = 1000

// largeToken matches a number of 16 digits or more, or with an exponent. A float64 holds any other integer exactly.
var largeToken = regexp.MustCompile(`"progressToken"[ \t\r\n]*:[ \t\r\n]*-?[0-9](?:[0-9.]{15}|[0-9.]*[eE])`)

// arrived records the progress token of a tools/call if mcp-go would round it.
func (t *tokens) arrived(ctx context.Context, id, message any) {
	raw, _ := message.(json.RawMessage)
	if !largeToken.Match(raw) {
		return
	}
	var m struct {
		Method string
		Params struct {
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(raw, &m) != nil || m.Method != string(mcp.MethodToolsCall) {
		return
	}
	number := json.Number(m.Params.Meta.ProgressToken)
	if f, err := number.Float64(); err != nil || exact(f) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exact == nil || len(t.exact) >= maxTokens {
		t.exact = make(map[string]json.Number)
	}
	t.exact[callKey(ctx, id)] = number
}

// decoded replaces a rounded token in a decoded request by the exact token.
func (t *tokens) decoded(ctx context.Context, id any, request *mcp.CallToolRequest) {
	meta := request.Params.Meta
	if meta == nil || meta.ProgressToken == nil {
		return
	}
	if f, ok := meta.ProgressToken.(float64); !ok || exact(f) {
		return
	}
	key := callKey(ctx, id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if number, ok := t.exact[key]; ok {
		meta.ProgressToken = number
		delete(t.exact, key)
	}
}

// exact reports whether f is the float64 of no more than one integer.
func exact(f float64) bool { return -1<<53 < f && f < 1<<53 }

// callKey returns a key for a request: the address of its session object, and its id. Over stateless HTTP all requests
// have the same session id, but each has a session object of its own.
func callKey(ctx context.Context, id any) string {
	return fmt.Sprintf("%p %v", server.ClientSessionFromContext(ctx), id)
}
