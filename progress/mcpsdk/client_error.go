package mcpsdk

import (
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tooldeadline/tooldeadline/internal/request"
)

// CodeRequestTimeout is the code of the [*jsonrpc.Error] of a request that timed out at
// the client (SPEC 8.2). No specification assigns one; hosts know this one from the
// TypeScript SDK, and so are its message and its data, in milliseconds. A server may
// answer with the same number: only a timeout at the client is a [*timeout.Error] too.
const CodeRequestTimeout = request.Code

// A requestTimeout is a *request.Error that is a *jsonrpc.Error as well.
type requestTimeout struct {
	stop *request.Error
	wire *jsonrpc.Error
}

func (e *requestTimeout) Error() string   { return e.stop.Error() }
func (e *requestTimeout) Timeout() bool   { return true }
func (e *requestTimeout) Unwrap() []error { return []error{e.stop, e.wire} }

func asRPC(err error) error {
	stop, ok := err.(*request.Error)
	if !ok || !stop.Timeout() {
		return err
	}
	return &requestTimeout{stop, &jsonrpc.Error{Code: request.Code, Message: stop.Message(), Data: stop.Data()}}
}
