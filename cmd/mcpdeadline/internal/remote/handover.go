package remote

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A trial is a session that was begun to find out whether the server begins new sessions. The next run continues that
// session, because some servers allow only one.
type trial struct {
	session, version string
	answer           *jsonrpc.Message // the answer to initialize
}

// A handover carries state from a run to later runs of the same session of the host.
type handover struct {
	mu             sync.Mutex
	trial          *trial
	failedRenewals map[int]time.Time // by HTTP status, when a message was last refused with it in a new session, too
}

// uselessLimit is how long mayRenew returns false after renewFailed with the same status.
const uselessLimit = time.Minute

// renewFailed records that a message was refused with an HTTP status in a new session, too.
func (h *handover) renewFailed(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failedRenewals[status] = time.Now()
}

// mayRenew reports whether a new session may help after a refusal with an HTTP status.
func (h *handover) mayRenew(status int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, useless := h.failedRenewals[status]
	return !useless || time.Since(since) >= uselessLimit
}

// swap keeps t, which may be nil, and returns the trial that it replaces, or nil if there was none.
func (h *handover) swap(t *trial) (old *trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, h.trial = h.trial, t
	return old
}
