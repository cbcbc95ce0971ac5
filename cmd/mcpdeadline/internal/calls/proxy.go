package calls

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Settings are what the user has decided.
type Settings struct {
	Alive   Signs
	Ping    time.Duration // time to answer a ping, after which the server is killed; 0 never kills it
	Declare bool          // declare the limits in tools/list
	Remote  bool          // the server is at a URL
}

// A Proxy holds what all sessions share.
type Proxy struct {
	Settings
	Profile Profile                             // of hosts that Known does not know
	Known   func(name, version string) *Profile // of a host by what it calls itself, or nil; nil knows none
	Drain   *toolcall.Drain
	Logger  *slog.Logger
	Stderr  io.Writer
	Log     *Log
	Tasks   *task.Tasks          // nil if no Profile has a Continuation
	Max     int                  // largest message, in bytes
	Dials   func() server.Dialer // of a session
	Mark    string               // of the command line; see CommandMark

	advised sync.Once // that the server's stdout is for messages
}

// Shutdown aborts all calls and waits until they have been answered.
func (p *Proxy) Shutdown(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Drain.Shutdown(ctx); err != nil {
		p.Logger.Warn("shutdown", "error", err)
	}
}
