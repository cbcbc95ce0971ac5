package mcpgo

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A requestTimeout is a *request.Error that is mcp-go's error for such a request as well.
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
