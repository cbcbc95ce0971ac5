package remote

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A trial is a session that was begun to see whether the server does. The next run continues it: there are
// servers that begin one session only.
type trial struct {
	session, version string
	answer           *jsonrpc.Message // to initialize
}

// A handover is what a run leaves to those after it.
type handover struct {
	mu             sync.Mutex
	trial          *trial
	failedRenewals map[int]time.Time // since when a new session has not helped against a status
}

// uselessLimit is how long no new session is tried against a status against which the last one has not helped.
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

// take returns what was put, or nil, and forgets it.
func (h *handover) take() *trial {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trial
	h.trial = nil
	return t
}
