package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A RequestTimeout is the error of a request that timed out at the client, in the
// *transport.Error that mcp-go's client makes of it. See [Limit] for what else errors.Is and
// errors.As find in it.
type RequestTimeout struct {
	// Details are those of the equivalent JSON-RPC error: the code request.CodeTimeout, and the
	// message and the data that the TypeScript SDK would give it.
	Details mcp.JSONRPCErrorDetails

	stop *request.Error
}

// Error returns a text with the method, the limit and, if it differs from the limit, the elapsed
// time.
func (e *RequestTimeout) Error() string { return e.stop.Error() }

// Timeout returns true.
func (e *RequestTimeout) Timeout() bool { return true }

// Unwrap returns the *[request.Error] and mcp.ErrRequestInterrupted.
func (e *RequestTimeout) Unwrap() []error { return []error{e.stop, mcp.ErrRequestInterrupted} }

func asTimeout(err error) error {
	stop, ok := err.(*request.Error)
	if !ok || !stop.Timeout() {
		return err
	}
	return &RequestTimeout{mcp.JSONRPCErrorDetails{Code: request.CodeTimeout, Message: stop.Message(), Data: stop.Data()}, stop}
}
