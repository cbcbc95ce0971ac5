// Package observe says what a tool call tells the task that it may become.
package observe

import "context"

// A Call is notified of the execution of one call.
type Call interface {
	// Started is called before the tool, with its context, on the tool's goroutine.
	Started(ctx context.Context)
	// Ended is called when the execution has ended. The call waits for it.
	Ended()
}
