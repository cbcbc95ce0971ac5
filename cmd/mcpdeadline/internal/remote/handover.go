package remote

import (
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

// A handover carries state from a run to later runs of the same session of the host.
type handover struct {
	trial  atomic.Pointer[trial] // for the next run; nil if there is none
	failed sync.Map              // by HTTP status, the time.Time when a message was last refused with it in a new session, too
}

// uselessLimit is how long mayRenew returns false after renewFailed with the same status.
const uselessLimit = time.Minute

// renewFailed records that a message was refused with an HTTP status in a new session, too.
func (h *handover) renewFailed(status int) { h.failed.Store(status, time.Now()) }

// mayRenew reports whether a new session may help after a refusal with an HTTP status.
func (h *handover) mayRenew(status int) bool {
	at, failed := h.failed.Load(status)
	return !failed || time.Since(at.(time.Time)) >= uselessLimit
}
