package mcpgo

import (
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// requestIDKey is in the _meta of a call. It brings the id of the request from the hook, which gets it, to
// the middleware, which does not: nothing else goes from the one to the other.
const requestIDKey = "io.github.tooldeadline/requestID"

// A requestID is that of one call. A client cannot send one: its _meta has no values of this type.
type requestID struct {
	text string
	bare bool // the request had no _meta
}

// requestCalled is the hook.
func requestCalled(_ context.Context, id any, r *mcp.CallToolRequest) {
	text := textOf(id)
	if text == "" {
		return
	}
	own := &requestID{text, r.Params.Meta == nil}
	if own.bare {
		r.Params.Meta = new(mcp.Meta)
	}
	r.Params.Meta.SetMetaField(requestIDKey, own)
}

func textOf(id any) string {
	switch id := id.(type) {
	case string:
		return id
	case int64: // of a cancellation
		return textOf(float64(id)) // as mcp-go reads the ids of calls
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64)
	}
	return ""
}

// takeRequestID returns the id of a call, empty without [Install], and takes it out of the request, as the
// tool is to see that.
func takeRequestID(r *mcp.CallToolRequest) string {
	if r.Params.Meta == nil {
		return ""
	}
	own, ok := r.Params.Meta.AdditionalFields[requestIDKey].(*requestID)
	if !ok {
		return ""
	}
	delete(r.Params.Meta.AdditionalFields, requestIDKey)
	if own.bare && len(r.Params.Meta.AdditionalFields) == 0 { // or another hook has put something there
		r.Params.Meta = nil
	}
	return own.text
}

// sessionIDOf is the id of a session as the protocol knows it: over stdio and in one process there
// is none, and mcp-go makes one up.
func sessionIDOf(session server.ClientSession) string {
	if session == nil || local(session) {
		return ""
	}
	return session.SessionID()
}
