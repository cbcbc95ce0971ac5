package host

import (
	"context"
	"errors"
	"log/slog"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
)

// NotNamed is a process id that means that Watch finds the host itself.
const NotNamed = -1

// Watch returns a context that is done when the host has ended, even if another process holds stdin open. pid is the
// process id of the host, NotNamed, or 0. If pid is 0, the context is never done. Watch logs the end of the host, and a
// warning if the system cannot detect it.
func Watch(pid int, logger *slog.Logger) (context.Context, context.CancelFunc) {
	var ctx context.Context
	var stop context.CancelFunc
	switch pid {
	case NotNamed:
		ctx, stop = mcphost.Context(context.Background())
	case 0:
		return context.Background(), func() {}
	default:
		ctx, stop = mcphost.ContextOf(context.Background(), pid)
	}
	logged := context.AfterFunc(ctx, func() { logger.Warn("ending with the host", "error", context.Cause(ctx)) })
	if _, err := mcphost.Of(ctx); errors.Is(err, errors.ErrUnsupported) {
		logger.Warn("only the end of stdin ends this program", "error", err)
	}
	return ctx, func() { logged(); stop() }
}
