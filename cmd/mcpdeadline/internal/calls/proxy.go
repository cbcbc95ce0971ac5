package calls

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calllog"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Proxy holds the settings and the state that all sessions share.
type Proxy struct {
	Alive   alive.Signs
	Ping    time.Duration                       // time to answer a ping, after which the server is killed; 0 never kills it
	Declare bool                                // declare the limits in tools/list
	Remote  bool                                // the server is at a URL
	Profile Profile                             // the profile of hosts for which Known returns nil
	Known   func(name, version string) *Profile // returns the profile of a host by its clientInfo, or nil
	Drain   *toolcall.Drain
	Logger  *slog.Logger
	Stderr  io.Writer
	Log     *calllog.Log
	Tasks   *task.Tasks          // the continued calls
	Max     int                  // largest message, in bytes
	Dials   func() server.Dialer // returns the dialer of a session
	Mark    string               // names the command line; see waittool.CommandMark

	advised sync.Once // makes noise log its advice once
}

// A Profile holds the settings that depend on the host of a session.
type Profile struct {
	Limits *toolcall.Settings
	Keep   time.Duration // interval of keep-alive notifications; 0 sends none
	Plain  bool          // the host does not prefix the names of tools with that of the server
	Waits  policy.Budget // how long the host waits for a call; zero if unknown or unlimited
	// Soft returns the soft limit of a tool, after which a call is answered with a handle. If after is 0, no call is
	// answered with a handle; if after is negative, every call is, at once. taskOnly says that calls of hosts without
	// support for tasks are refused.
	Soft func(tool string) (after time.Duration, taskOnly bool)
	// Continuation sets how a call continues after its soft limit. It is nil if no tool has a soft limit.
	Continuation *adapter.Continuation
}

// Shutdown aborts all calls and waits until they have been answered, but no longer than limit.
func (p *Proxy) Shutdown(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Drain.Shutdown(ctx); err != nil {
		p.Logger.Warn("shutdown", "error", err)
	}
}
