package mcpgo

import (
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// requestIDKey is a key in the _meta of a call. It carries the id of the request from a hook to the middleware, to
// which mcp-go does not pass the id. The request is the only value that both receive.
const requestIDKey = "io.github.tooldeadline/requestID"

// A requestID holds the id of the request of one call. A client cannot forge it, because decoded JSON has no value of
// this type.
type requestID struct {
	text string
	bare bool // the request had no _meta
}

// requestCalled is a hook that puts the id of a request into its _meta.
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
	case int64: // from a cancellation
		return textOf(float64(id)) // mcp-go decodes the ids of calls to float64
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64)
	}
	return ""
}

// takeRequestID returns the id that requestCalled has put into the _meta of a call, or "" if it has put none, as
// without [Install]. It removes the id, so that the tool does not see it.
func takeRequestID(r *mcp.CallToolRequest) string {
	if r.Params.Meta == nil {
		return ""
	}
	own, ok := r.Params.Meta.AdditionalFields[requestIDKey].(*requestID)
	if !ok {
		return ""
	}
	delete(r.Params.Meta.AdditionalFields, requestIDKey)
	if own.bare && len(r.Params.Meta.AdditionalFields) == 0 { // another hook may have added a field
		r.Params.Meta = nil
	}
	return own.text
}

// sessionIDOf returns the id by which the protocol identifies a session, or "" over stdio and in one process, where the
// id is an invention of mcp-go.
func sessionIDOf(session server.ClientSession) string {
	if session == nil || local(session) {
		return ""
	}
	return session.SessionID()
}
