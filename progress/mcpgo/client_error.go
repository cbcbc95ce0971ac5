package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A requestTimeout is the error of a request that timed out. Its tree has the *request.Error, and the error that mcp-go
// returns for an interrupted request.
type requestTimeout struct{ stop *request.Error }

func (e *requestTimeout) Error() string   { return e.stop.Error() }
func (e *requestTimeout) Timeout() bool   { return true }
func (e *requestTimeout) Unwrap() []error { return []error{e.stop, mcp.ErrRequestInterrupted} }

func asTimeout(err error) error {
	stop, ok := err.(*request.Error)
	if !ok || !stop.Timeout() {
		return err
	}
	return &requestTimeout{stop}
}
