package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A trial is a session that was begun to find out whether the server begins new sessions. The next run continues that
// session, because some servers allow only one.
type trial struct {
	session, version string
	answer           *jsonrpc.Message // the answer to initialize
}

// uselessLimit is how long mayRenew returns false after renewFailed with the same status.
const uselessLimit = time.Minute

// A handover carries state from a run to later runs of the same session of the host.
type handover struct {
	trial  atomic.Pointer[trial] // for the next run; nil if there is none
	failed sync.Map              // by HTTP status, the time.Time when a message was last refused with it in a new session, too
	ending sync.Map              // has a channel as a key for each session that is being ended, closed when it has been
}

// end calls f, which ends a session, on another goroutine.
func (h *handover) end(f func()) {
	ended := make(chan struct{})
	h.ending.Store(ended, nil)
	go func() {
		defer h.ending.Delete(ended)
		defer close(ended)
		f()
	}()
}

// await waits until all sessions that are being ended have ended, or ctx is done.
func (h *handover) await(ctx context.Context) {
	h.ending.Range(func(ended, _ any) bool {
		select {
		case <-ended.(chan struct{}):
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	})
}

// renewFailed records that a message was refused with an HTTP status in a new session, too.
func (h *handover) renewFailed(status int) { h.failed.Store(status, time.Now()) }

// mayRenew reports whether a new session may help after a refusal with an HTTP status: renewFailed was not called with
// that status within uselessLimit.
func (h *handover) mayRenew(status int) bool {
	at, failed := h.failed.Load(status)
	return !failed || time.Since(at.(time.Time)) >= uselessLimit
}
