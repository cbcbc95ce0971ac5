package mcpsdk

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// The SDK decodes an integer token to a float64, which is exact up to 2^53. Middleware never sees the digits of a larger
// token, nor the "task" of a call, which the SDK does not decode. WrapTransport and WrapHTTP see the message earlier, and
// copy the digits to exactTokenKey in _meta, and the task to askedKey. A client cannot misuse exactTokenKey, because the
// copy must round to the token. wrappedKey is the key in the _meta of initialize that WrapTransport sets.
const (
	tokenKey      = "progressToken"
	exactTokenKey = "io.github.tooldeadline/progressToken"
	askedKey      = "io.github.tooldeadline/task"
	wrappedKey    = "io.github.tooldeadline/wrapped"
)

// Bounds of the copies, which make a message longer: the messages of a batch that get some, and the largest "task".
const (
	maxCopies = 100
	maxTask   = 1 << 10
)

// withCopies returns the params of a request with copies of a large progress token and of the "task". It returns params
// itself if no copy is needed, or if readers may find different values in them.
func withCopies(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte(tokenKey)) && !bytes.Contains(params, []byte(`"task"`)) {
		return params
	}
	var p struct {
		Task json.RawMessage `json:"task"`
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if adapter.Unmarshal(params, &p) != nil {
		return params
	}
	if isLargeInteger(string(p.Meta.Token)) {
		params = adapter.SetMember(params, json.RawMessage(strconv.Quote(string(p.Meta.Token))), "_meta", exactTokenKey)
	}
	if len(p.Task) <= maxTask && bytes.HasPrefix(p.Task, []byte("{")) {
		params = adapter.SetMember(params, p.Task, "_meta", askedKey)
	}
	return params
}

// messagesWithCopies returns a message, or a batch of messages, with the copies in their params.
func messagesWithCopies(data []byte) []byte {
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) {
		var batch []json.RawMessage
		if adapter.Unmarshal(data, &batch) != nil {
			return data
		}
		out := []byte("[") // json.Marshal would write < in six bytes
		for i, m := range batch {
			if i < maxCopies {
				m = messageWithCopies(m)
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, m...)
		}
		return append(out, ']')
	}
	return messageWithCopies(data)
}

func messageWithCopies(message json.RawMessage) json.RawMessage {
	var m struct{ Params json.RawMessage }
	if adapter.Unmarshal(message, &m) != nil || !bytes.HasPrefix(m.Params, []byte("{")) {
		return message
	}
	return adapter.SetMember(message, withCopies(m.Params), "params")
}

// A body is the body of a request, which read replaces when its end has been read, before the SDK gets any of it. A body
// that is longer than the SDK reads by default, or would become so, is passed on as it is.
type body struct {
	io.ReadCloser
	read func([]byte) []byte
	rest io.Reader // nil before the first Read
}

func (b *body) Read(p []byte) (int, error) {
	if b.rest == nil {
		data, err := io.ReadAll(io.LimitReader(b.ReadCloser, mcp.DefaultMaxRequestBodyBytes))
		switch {
		case err != nil:
			b.rest = io.MultiReader(bytes.NewReader(data), failing{err})
		case len(data) == mcp.DefaultMaxRequestBodyBytes:
			b.rest = io.MultiReader(bytes.NewReader(data), b.ReadCloser)
		default:
			if with := b.read(data); len(with) <= mcp.DefaultMaxRequestBodyBytes {
				data = with
			}
			b.rest = bytes.NewReader(data)
		}
	}
	return b.rest.Read(p)
}

// failing is a reader that returns an error.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// mayHaveCopies reports whether a request may be a tools/call, which may have a large progress token or a "task". From
// protocol 2026-07-28 on the method is in a header.
func mayHaveCopies(r *http.Request) bool {
	if m := r.Header.Get("Mcp-Method"); m != "" && m != methodCall {
		return false
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	return kind == "" || strings.EqualFold(kind, "application/json")
}

// isLargeInteger reports whether s is an integer whose digits change on the way through a float64: it cannot hold the
// integer, or is marshalled with an exponent.
func isLargeInteger(s string) bool {
	if strings.Trim(strings.TrimPrefix(s, "-"), "0123456789") != "" {
		return false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !json.Valid([]byte(s)) {
		return false
	}
	out, err := json.Marshal(f)
	return err == nil && string(out) != s
}

// exactToken returns the progress token of a call with the digits that the client has sent. If it had to restore them,
// it also changes p, because the tool may send notifications with the token itself.
func exactToken(p *mcp.CallToolParamsRaw) any {
	token := p.GetProgressToken()
	digits, ok := p.Meta[exactTokenKey].(string)
	if !ok {
		return token
	}
	delete(p.Meta, exactTokenKey)
	if f, ok := token.(float64); ok && isLargeInteger(digits) {
		if g, _ := strconv.ParseFloat(digits, 64); f == g {
			token = json.Number(digits)
			p.Meta[tokenKey] = token
		}
	}
	return token
}
