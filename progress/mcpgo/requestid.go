package mcpgo

import (
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// requestIDKey is a key in the _meta of a call. It carries the id of the request from the hook, which gets the id, to
// the middleware, which does not. Nothing but the request reaches both.
const requestIDKey = "io.github.tooldeadline/requestID"

// A requestID is the id of the request of one call. A client cannot send one: its _meta has no values of this type.
type requestID struct {
	text string
	bare bool // the request had no _meta
}

// requestCalled is the hook that puts the id of the request into its _meta.
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

// takeRequestID returns the id of the request of a call, or "" without [Install]. It removes the id from the _meta,
// so that the tool does not see it.
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

// sessionIDOf returns the id of a session in the protocol. It returns "" over stdio and in one process, for which
// mcp-go makes up an id.
func sessionIDOf(session server.ClientSession) string {
	if session == nil || local(session) {
		return ""
	}
	return session.SessionID()
}
