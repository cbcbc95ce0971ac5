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

// Settings are the settings of the user.
type Settings struct {
	Alive   alive.Signs
	Ping    time.Duration // time to answer a ping, after which the server is killed; 0 never kills it
	Declare bool          // declare the limits in tools/list
	Remote  bool          // the server is at a URL
}

// A Proxy holds what all sessions share.
type Proxy struct {
	Settings
	Profile Profile                             // of hosts that Known does not know
	Known   func(name, version string) *Profile // returns the profile of a host by its clientInfo, or nil if it knows none; may be nil
	Drain   *toolcall.Drain
	Logger  *slog.Logger
	Stderr  io.Writer
	Log     *calllog.Log
	Tasks   *task.Tasks          // nil if no Profile has a Continuation
	Max     int                  // largest message, in bytes
	Dials   func() server.Dialer // returns the dialer of a session
	Mark    string               // names the command line; see waittool.CommandMark

	advised sync.Once // limits the advice that the server's stdout is for messages to one
}

// A Profile holds the settings that depend on the host of a session.
type Profile struct {
	Limits *toolcall.Settings
	Keep   time.Duration // interval of keep-alive notifications; 0 sends none
	Plain  bool          // the host does not prefix the names of tools with that of the server
	Waits  policy.Budget // how long the host waits for a call, if that is known
	// Soft returns the soft limit of a tool, after which a call is answered with a handle, and whether calls of hosts
	// that support no tasks are refused. If after is 0, no call gets a handle; if negative, each does at once.
	Soft func(tool string) (after time.Duration, taskOnly bool)
	// Continuation sets how a call goes on after Soft; nil if no tool has a soft limit.
	Continuation *adapter.Continuation
}

// Shutdown aborts all calls and waits until they have been answered.
func (p *Proxy) Shutdown(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Drain.Shutdown(ctx); err != nil {
		p.Logger.Warn("shutdown", "error", err)
	}
}
