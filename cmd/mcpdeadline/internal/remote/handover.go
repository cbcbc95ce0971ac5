package remote

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A trial is a session that was begun to see whether the server begins one. The next run continues it, because some
// servers begin only one session.
type trial struct {
	session, version string
	answer           *jsonrpc.Message // to initialize
}

// A handover carries state from a run to the runs after it.
type handover struct {
	mu             sync.Mutex
	trial          *trial
	failedRenewals map[int]time.Time // by status: when a new session was last refused with it, too
}

// uselessLimit is how long no new session is tried after a status with which the last new session was refused, too.
const uselessLimit = time.Minute

func (h *handover) renewFailed(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failedRenewals == nil {
		h.failedRenewals = make(map[int]time.Time)
	}
	h.failedRenewals[status] = time.Now()
}

func (h *handover) mayRenew(status int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, useless := h.failedRenewals[status]
	return !useless || time.Since(since) >= uselessLimit
}

func (h *handover) put(t *trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trial = t
}

// take returns the trial that was put, or nil, and removes it.
func (h *handover) take() *trial {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trial
	h.trial = nil
	return t
}
