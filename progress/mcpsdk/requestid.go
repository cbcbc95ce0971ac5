package mcpsdk

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// requestID returns the id of the request for which the SDK has made ctx, as text. It returns ""
// if it does not find the id.
//
// The SDK stores the id in the context under a key that it does not export. A connection over Streamable HTTP looks
// that key up in the context of each message that it writes, and requestKeys records the key there. WrapTransport and
// WrapHTTP could copy the id to _meta instead, but not every server has them, and clients write the id after the
// params, when it is too late for a copy.
func requestID(ctx context.Context) string {
	switch id := rawRequestID(ctx).(type) {
	case int64:
		return strconv.FormatInt(id, 10)
	case string:
		return id
	}
	return ""
}

// rawRequestID returns the id of the request for which the SDK has made ctx, an int64 or a string, or nil if it does
// not find the id.
func rawRequestID(ctx context.Context) any {
	for _, key := range requestKeys() {
		if id, ok := ctx.Value(key).(jsonrpc.ID); ok && id.IsValid() {
			return id.Raw()
		}
	}
	return nil
}

// sessionID returns the id of a session, or "" if the protocol has no sessions: over stdio, and over stateless HTTP.
func sessionID(session *mcp.ServerSession) string {
	if session == nil { // the handler was called directly, without a server
		return ""
	}
	return session.ID()
}

// requestKeys returns the keys with types of the SDK that a connection looks up in a context. One of them is the key of
// the request id.
var requestKeys = sync.OnceValue(func() []any {
	asked := &inquiries{Context: context.Background()}
	conn, err := new(mcp.StreamableServerTransport).Connect(context.Background())
	if err != nil {
		return nil
	}
	_ = conn.Write(asked, &jsonrpc.Request{Method: "notifications/none"}) // no client is connected; the error is of no use
	_ = conn.Close()
	own := reflect.TypeFor[mcp.Server]().PkgPath()
	return slices.DeleteFunc(asked.keys, func(key any) bool { return reflect.TypeOf(key).PkgPath() != own })
})

// checkSDK panics if this version of the SDK has no key for the request id, so that an incompatible update fails when
// the server starts, and not during a call. The declarations below let the compiler check the fields that this package
// copies by reflection.
func checkSDK() {
	if len(requestKeys()) == 0 {
		panic(&timeout.ConfigError{Key: "go-sdk", Value: "a version without the id of a request in its context",
			Accepted: "a version that this one of mcpsdk knows"})
	}
}

var _ = (&mcp.ClientRequest[*mcp.PingParams]{}).Params
var _ = (&mcp.ServerRequest[*mcp.PingParams]{}).Params

// inquiries is a context without values. It records the keys that are looked up in it.
type inquiries struct {
	context.Context
	keys []any
}

func (i *inquiries) Value(key any) any {
	i.keys = append(i.keys, key)
	return nil
}
