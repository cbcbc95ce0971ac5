package mcpgo

import (
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// requestIDKey is in the _meta of a call, between the hook that is told the id of the request and
// the middleware, which is not: nothing else goes from the one to the other.
const requestIDKey = "io.github.tooldeadline/requestID"

// A requestID is that of one call. A client cannot send one: its _meta has no values of this type.
type requestID struct {
	text string
	bare bool // the request had no _meta
	of   server.ClientSession
}

// requestCalled is the hook.
func requestCalled(ctx context.Context, id any, r *mcp.CallToolRequest) {
	text := textOf(id)
	if text == "" {
		return
	}
	own := &requestID{text, r.Params.Meta == nil, server.ClientSessionFromContext(ctx)}
	if own.bare {
		r.Params.Meta = new(mcp.Meta)
	}
	r.Params.Meta.SetMetaField(requestIDKey, own)
}

func textOf(id any) string {
	switch id := id.(type) {
	case string:
		return id
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64)
	}
	return ""
}

type requestIDInContext struct{}

// withRequestID takes the id out of a request, as the tool is to see it, and puts it into the
// context of the call.
func withRequestID(ctx context.Context, r *mcp.CallToolRequest) context.Context {
	if r.Params.Meta == nil {
		return ctx
	}
	own, ok := r.Params.Meta.AdditionalFields[requestIDKey].(*requestID)
	if !ok {
		return ctx
	}
	delete(r.Params.Meta.AdditionalFields, requestIDKey)
	if own.bare && len(r.Params.Meta.AdditionalFields) == 0 { // or another hook has put something there
		r.Params.Meta = nil
	}
	return context.WithValue(ctx, requestIDInContext{}, own)
}

// requestIDOf returns the id of a call of session; empty without [Install]. A tool may run a server
// itself, whose calls have its context too and are others.
func requestIDOf(ctx context.Context, session server.ClientSession) string {
	if own, _ := ctx.Value(requestIDInContext{}).(*requestID); own != nil && own.of == session {
		return own.text
	}
	return ""
}

// sessionIDOf is the id of a session as the protocol knows it: over stdio and in one process there
// is none, and mcp-go makes one up.
func sessionIDOf(session server.ClientSession) string {
	if session == nil || local(session) {
		return ""
	}
	return session.SessionID()
}
