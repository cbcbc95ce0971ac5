package mcpsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// WrapHTTP goes around the SDK's handlers for HTTP, and does two things that [Middleware]
// cannot do alone:
//
//   - A tool is aborted when its client disconnects, on SSE and on stateless Streamable
//     HTTP, where nobody could ever take the result. The SDK lets such a tool run on until
//     its limits stop it. On stateful Streamable HTTP a tool runs on by design, since the
//     client may come back for the result, until the client ends the session: the SDK would
//     have it wait for its tools.
//   - Progress tokens that are integers above 2^53 are echoed exactly, see [WrapTransport].
//
// Since a disconnect is how a client of protocol 2026-07-28 cancels a call, a server
// without WrapHTTP should set PropagateRequestCancellation in mcp.StreamableHTTPOptions.
//
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
func WrapHTTP(h http.Handler) http.Handler {
	calls := new(toolcall.Sessions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &httpRequest{r.Context(), calls}))
		switch {
		case r.Method == http.MethodPost && r.Body != nil:
			keepTokens(r)
		case r.Method == http.MethodDelete:
			defer abortUnlessAnswered(calls, r.Header.Get(sessionHeader))()
		}
		h.ServeHTTP(w, r)
	})
}

// keepTokens changes the body of a request as keepToken does. The SDK bounds what it reads
// of a body; what is larger than its default bound is not looked at here.
func keepTokens(r *http.Request) {
	head, err := io.ReadAll(io.LimitReader(r.Body, mcp.DefaultMaxRequestBodyBytes))
	body := head
	if len(head) < mcp.DefaultMaxRequestBodyBytes {
		// The copy may be what makes it too long, and rounded is better than refused.
		if out, changed := keepTokensIn(head); changed && len(out) <= mcp.DefaultMaxRequestBodyBytes {
			body = out
			r.ContentLength = int64(len(out))
		}
	}
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), r.Body}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// keepTokensIn changes a message, or a batch of them. A batch within a batch is no message:
// to go down into it would cost a copy of the body for each bracket that somebody sends.
func keepTokensIn(body []byte) (_ []byte, changed bool) {
	if !bytes.Contains(body, []byte(tokenKey)) {
		return body, false
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return keepTokenIn(body)
	}
	var batch []json.RawMessage
	if json.Unmarshal(body, &batch) != nil {
		return body, false
	}
	for i, one := range batch {
		out, ok := keepTokenIn(one)
		batch[i], changed = out, changed || ok
	}
	return remarshal(batch, body, changed)
}

func keepTokenIn(body []byte) (_ []byte, changed bool) {
	var message map[string]json.RawMessage
	if json.Unmarshal(body, &message) != nil || message == nil {
		return body, false
	}
	message["params"], changed = keepToken(message["params"])
	return remarshal(message, body, changed)
}

func remarshal(v any, body []byte, changed bool) ([]byte, bool) {
	if changed {
		if out, err := encode(v); err == nil {
			return out, true
		}
	}
	return body, false
}
