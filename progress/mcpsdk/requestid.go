package mcpsdk

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// requestID returns the id of the request for which the SDK has made ctx, as text. It returns ""
// if it does not find the id.
//
// The SDK has the id in the context, by a key that it does not export, for its connections over
// Streamable HTTP: one asks the context of each message that it writes by that key. So the key is
// learnt from such a connection. Rejected: the copy of the id in _meta that WrapTransport and
// WrapHTTP could make, since servers on other transports have neither, and clients put the id
// behind the params, where it is too late.
func requestID(ctx context.Context) string {
	if id := rawRequestID(ctx); id != nil {
		return fmt.Sprint(id)
	}
	return ""
}

// rawRequestID is requestID in the types of the SDK: it returns an int64, a string, or nil.
func rawRequestID(ctx context.Context) any {
	for _, key := range requestKeys() {
		if id, ok := ctx.Value(key).(jsonrpc.ID); ok && id.IsValid() {
			return id.Raw()
		}
	}
	return nil
}

// sessionID returns the id of the session of a call. It returns "" where the protocol has no session: on stdio, and
// over stateless HTTP.
func sessionID(session *mcp.ServerSession) string {
	if session == nil { // a handler that is called without a server
		return ""
	}
	return session.ID()
}

// requestKeys are the keys that a connection looks up in a context. The key of the request id is one of them.
var requestKeys = sync.OnceValue(func() []any {
	asked := &inquiries{Context: context.Background()}
	conn, err := new(mcp.StreamableServerTransport).Connect(context.Background())
	if err != nil {
		return nil
	}
	_ = conn.Write(asked, &jsonrpc.Request{Method: "notifications/none"}) // nobody is connected
	_ = conn.Close()
	own := reflect.TypeFor[mcp.Server]().PkgPath()
	return slices.DeleteFunc(asked.keys, func(key any) bool { return reflect.TypeOf(key).PkgPath() != own })
})

// checkSDK panics if the SDK no longer has the key of the request id: the author of a server who updates the SDK
// learns that at the start, and not in production. The fields that are copied by reflection are checked by the
// compiler.
func checkSDK() {
	if len(requestKeys()) == 0 {
		panic(&timeout.ConfigError{Key: "go-sdk", Value: "a version without the id of a request in its context",
			Accepted: "a version that this one of mcpsdk knows"})
	}
}

var _ = (&mcp.ClientRequest[*mcp.PingParams]{}).Params
var _ = (&mcp.ServerRequest[*mcp.PingParams]{}).Params

// inquiries is a context without values that records the keys for which it is asked.
type inquiries struct {
	context.Context
	keys []any
}

func (i *inquiries) Value(key any) any {
	i.keys = append(i.keys, key)
	return nil
}
