package mcpsdk

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Options are the settings of [Install] and [Handler].
type Options = adapter.Options

// A Continuation is how calls go on of clients that know no tasks: After how long, and by which Tool.
type Continuation = adapter.Continuation

// settings are Options as the adapter uses them.
type settings struct {
	*adapter.Server
	repeats *adapter.Answers[mcp.Result] // nil without Idempotency
	names   sessionNames
	watched sync.Map // the sessions whose end is waited for, by name
}

func newSettings(o *Options) *settings {
	s := &settings{Server: adapter.NewServer(o)}
	if s.Idempotency {
		s.repeats = new(adapter.Answers[mcp.Result])
	}
	return s
}
