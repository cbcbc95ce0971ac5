package alive_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tiny idle limit does not make the proxy look for the processes of the server without a pause. SPEC 2.13.
func TestTinyIdleLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p alive.Pulse
		p.Hold() // a question, for which the limit waits
		var looks atomic.Int64
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			p.Begin(ctx, func() server.Observable {
				if looks.Add(1) > 10_000 {
					p.End(false)
				}
				return nil
			}, alive.Signs{Notify: true}, new(alive.Load))
			time.Sleep(time.Second)
			p.End(false)
			return nil
		}, timeout.Config{Idle: 7})
		if n := looks.Load(); err != nil || n > 1001 {
			t.Errorf("%d looks, %v", n, err)
		}
	})
}
