package mcpsdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// WrapTransport wraps the transport of a server, such as stdio; for a server over HTTP there is [WrapHTTP]. With it,
// [Install] sees which calls of a client of protocol 2025-11-25 ask for a task, and progress tokens that are
// integers above 2^53 are echoed exactly. Without it the SDK rounds such integers, and the client does not recognise
// its token. A message to a file that another process makes non-blocking, such as a stdout that a server in Node
// shares, is written completely; see package stdio.
//
// The SDK does not pass the negotiated protocol version to a wrapped connection. Therefore a batch is
// answered in every version, although an unwrapped connection of the SDK would end at a batch from
// 2025-06-18 on.
//
//	server.Run(ctx, mcpsdk.WrapTransport(&mcp.StdioTransport{}))
func WrapTransport(t mcp.Transport) mcp.Transport { return &transport{patient(t)} }

type transport struct{ mcp.Transport }

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	calls, _ := ctx.Value(lineKey{}).(*adapter.Sessions)
	return &connection{c, calls}, nil
}

// SupportsProtocolVersion reports whether the wrapped transport supports a protocol version. It returns true if the
// wrapped transport does not have this method.
func (t *transport) SupportsProtocolVersion(version string) bool {
	s, ok := t.Transport.(mcp.ProtocolVersionSupporter)
	return !ok || s.SupportsProtocolVersion(version)
}

type connection struct {
	mcp.Connection
	calls *adapter.Sessions // in the session ""; nil outside of Serve
}

// panicked is deferred to turn a panic of the caller's connection into an error. The SDK reads and writes on its own
// goroutines, where a panic would end the process.
func panicked(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("mcpsdk: panic of the connection: %v", v)
	}
}

func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) (err error) {
	defer panicked(&err)
	return c.Connection.Write(ctx, msg)
}

func (c *connection) read(ctx context.Context) (_ jsonrpc.Message, err error) {
	defer panicked(&err)
	return c.Connection.Read(ctx)
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.read(ctx)
	if err != nil && c.calls != nil {
		c.calls.Abort(nil, nil, toolcall.ErrDisconnected) // before the SDK cancels the calls with err as the cause
	}
	if req, ok := msg.(*jsonrpc.Request); ok && err == nil {
		req.Params = withCopies(req.Params)
		switch req.Method {
		case "initialize":
			req.Params = adapter.SetMember(req.Params, json.RawMessage("true"), "_meta", wrappedKey) // read by wrapped
		case "notifications/cancelled":
			if message, err := jsonrpc.EncodeMessage(req); err == nil && c.calls != nil {
				if id, cause, ok := adapter.Cancelled(message); ok {
					c.calls.Abort("", id, cause) // before the SDK cancels the call without a cause
				}
			}
		}
	}
	return msg, err
}
