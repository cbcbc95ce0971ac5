// Package command is how package procgroup has package timeout run a command. The execution
// of a command does not end with the function that waits for it: its processes must be
// killed, its output collected and its exit code read before anybody can say how it ended.
// What Conclude returns then is what the caller and everybody who watches is told.
package command

import (
	"context"
	"log/slog"
	"time"
)

// A Command is what an execution has to know of the command that it runs.
type Command struct {
	Name               string // of the tool, where the options have none
	Total, Idle, Grace time.Duration

	// Describe says what the processes are doing. The execution shows that in place of the
	// stack of its function, which only waits for them. stopped says that a limit has
	// fired; nothing has been cancelled yet, so Describe must be quick. It may return nil,
	// and is safe for concurrent use.
	Describe func(stopped bool) []byte

	// Conclude ends what is left of the command. It is called once, when the function has
	// returned, with the outcome of the execution, which it may complete in place. It
	// returns what the command has left behind that is worth a warning, and the outcome of
	// the call.
	Conclude func(outcome error) (left []slog.Attr, final error)
}

// Run is timeout.Run for the function that waits for c. opts is a []timeout.Option; the error
// is a *timeout.ConfigError, and Conclude is not called, where one of them is not for
// commands. Nor is it where the context is over from the start. The execution never abandons
// wait, which may be waiting for a slow start: nobody would end a command that comes into
// being after that.
//
// Package timeout sets Run. Rejected: an exported option, which no other package could use,
// and a value of the context, which executions within would inherit.
var Run func(ctx context.Context, c *Command, wait func(context.Context) error, opts any) error
