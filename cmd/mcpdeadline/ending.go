package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// notNamed is the hostPID for a host that has to be found.
const notNamed = -1

// watchHost returns a context that is done when the host has ended, even if another process holds
// stdin open.
func watchHost(pid int, logger *slog.Logger) (context.Context, context.CancelFunc) {
	var named []mcphost.Option
	switch pid {
	case notNamed:
	case 0:
		return context.Background(), func() {}
	default:
		named = append(named, mcphost.WithPID(pid))
	}
	ctx, stop := mcphost.Context(context.Background(), named...)
	logged := context.AfterFunc(ctx, func() { logger.Warn("ending with the host", "error", context.Cause(ctx)) })
	if _, err := mcphost.Of(ctx); errors.Is(err, errors.ErrUnsupported) {
		logger.Warn("only the end of stdin ends this program", "error", err)
	}
	return ctx, func() { logged(); stop() }
}

// A stall knows whether a message of the host waits for somebody who does not read. The end of stdin is behind what
// else the host has sent then, and nobody reads that.
type stall struct {
	gone func() bool // the host has closed stdin; nil if that is not known
	end  func()      // called once a message has waited for toolcall.ShutdownLimit, and the host has gone

	mu    sync.Mutex
	timer *time.Timer
	since time.Time // zero if no message waits
}

func newStall(gone func() bool, end func()) *stall { return &stall{gone: gone, end: end} }

// wait is called when a message begins to wait.
func (s *stall) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.since = time.Now(); {
	case s.gone == nil:
	case s.timer == nil:
		s.timer = time.AfterFunc(toolcall.ShutdownLimit, s.look)
	default:
		s.timer.Reset(toolcall.ShutdownLimit)
	}
}

// read is called when it has been passed on.
func (s *stall) read() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since = (time.Time{}); s.timer != nil {
		s.timer.Stop()
	}
}

func (s *stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.since.IsZero() || time.Since(s.since) < toolcall.ShutdownLimit: // it has just been read
	case s.gone():
		s.end()
	default:
		s.timer.Reset(time.Second)
	}
}
