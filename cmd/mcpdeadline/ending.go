package main

import (
	"context"
	"errors"

	mcphost "github.com/tooldeadline/tooldeadline/procgroup/host"
)

// notNamed is the hostPID for a host that has to be found.
const notNamed = -1

// watchHost returns a context that is done when the host has ended, even if another process holds
// stdin open.
func (p *proxy) watchHost() (context.Context, context.CancelFunc) {
	var named []mcphost.Option
	switch p.hostPID {
	case notNamed:
	case 0:
		return context.Background(), func() {}
	default:
		named = append(named, mcphost.WithPID(p.hostPID))
	}
	ctx, stop := mcphost.Context(context.Background(), named...)
	logged := context.AfterFunc(ctx, func() { p.logger.Warn("ending with the host", "error", context.Cause(ctx)) })
	if _, err := mcphost.Of(ctx); errors.Is(err, errors.ErrUnsupported) {
		p.logger.Warn("only the end of stdin ends this program", "error", err)
	}
	return ctx, func() { logged(); stop() }
}
