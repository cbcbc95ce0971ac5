package mcpsdk

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A requestTimeout is the error of a request that timed out. Its tree has the *request.Error and a *jsonrpc.Error.
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
	return &requestTimeout{stop, &jsonrpc.Error{Code: request.CodeTimeout, Message: stop.Message(), Data: stop.Data()}}
}

// codeRejected is the code of the SDK's error for a request that the transport could not
// deliver, although the connection is intact. The SDK does not export the code.
const codeRejected = -32005

func transient(err error) bool {
	var wire *jsonrpc.Error
	return request.TimedOut(err) || errors.As(err, &wire) && wire.Code == codeRejected
}
