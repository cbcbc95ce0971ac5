package toolcall

import (
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A callContext is the context of a tool.
type callContext struct {
	context.Context
	call    *Call
	monitor *heartbeat.Monitor // of the call's execution
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// FromContext returns the call that ctx belongs to, the innermost one, which must not be
// changed; nil where there is none.
//
// A tool may run a server itself and pass its context on to it. The calls of that server are
// others, and their Session tells them apart.
func FromContext(ctx context.Context) *Call {
	if c, _ := ctx.Value(callKey{}).(*callContext); c != nil {
		return c.call
	}
	return nil
}

// Direct reports whether ctx is under the limits of the call that it belongs to, and not under
// those of another execution within. It is for what waits on behalf of the tool, such as for a
// person: somebody nearer to the question may have set a limit for it.
func Direct(ctx context.Context) bool {
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c != nil && c.monitor == heartbeat.FromContext(ctx)
}
