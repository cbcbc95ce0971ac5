package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/internal/request"
)

// CodeRequestTimeout is the code of a [RequestTimeout] (SPEC 8.2). No specification assigns
// one; hosts know this one from the TypeScript SDK.
const CodeRequestTimeout = request.Code

// A RequestTimeout is the error of a request that timed out at the client, in the
// *transport.Error that mcp-go's client makes of it. See [Limit] for what else errors.Is and
// errors.As find in it.
type RequestTimeout struct {
	// Details are those of the JSON-RPC error that stands for it: CodeRequestTimeout, and the
	// message and the data of the TypeScript SDK, in milliseconds.
	Details mcp.JSONRPCErrorDetails

	stop *request.Error
}

// Error names the method, the limit and, where it differs, the elapsed time.
func (e *RequestTimeout) Error() string { return e.stop.Error() }

// Timeout is true.
func (e *RequestTimeout) Timeout() bool { return true }

// Unwrap gives what [Limit] says.
func (e *RequestTimeout) Unwrap() []error { return []error{e.stop, mcp.ErrRequestInterrupted} }

func asTimeout(err error) error {
	stop, ok := err.(*request.Error)
	if !ok || !stop.Timeout() {
		return err
	}
	return &RequestTimeout{mcp.JSONRPCErrorDetails{Code: request.Code, Message: stop.Message(), Data: stop.Data()}, stop}
}
