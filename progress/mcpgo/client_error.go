package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A RequestTimeout is the error of a request that timed out at the client, in the
// *transport.Error that mcp-go's client makes of it. See [Limit] for what else errors.Is and
// errors.As find in it.
type RequestTimeout struct {
	// Details are the details of the equivalent JSON-RPC error: request.CodeTimeout, and the
	// message and the data of the TypeScript SDK, in milliseconds.
	Details mcp.JSONRPCErrorDetails

	stop *request.Error
}

// Error names the method, the limit and, where it differs, the elapsed time.
func (e *RequestTimeout) Error() string { return e.stop.Error() }

// Timeout is true.
func (e *RequestTimeout) Timeout() bool { return true }

// Unwrap returns what [Limit] says.
func (e *RequestTimeout) Unwrap() []error { return []error{e.stop, mcp.ErrRequestInterrupted} }

func asTimeout(err error) error {
	stop, ok := err.(*request.Error)
	if !ok || !stop.Timeout() {
		return err
	}
	return &RequestTimeout{mcp.JSONRPCErrorDetails{Code: request.CodeTimeout, Message: stop.Message(), Data: stop.Data()}, stop}
}
