package front

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// Bounds on the bytes that are queued for an HTTP client that does not read.
const (
	MaxUnsent  = 1 << 20 // for a notification stream, open or not; beyond it, messages are dropped
	maxAnswers = 4 << 20 // for one response; beyond it, notifications such as progress are dropped
)

// A downstream is an HTTP response on which messages are sent to a client.
type downstream struct {
	*jsonrpc.Mailbox
	call bool   // the response answers a tool call
	cut  func() // makes a write that waits for the client fail
}

// An audience holds the open responses to the requests of all sessions, and bounds the bytes queued for them.
type audience struct {
	unread atomic.Int64 // bytes that are queued on all responses
	most   int64        // the bound on unread; see the method bound

	mu        sync.Mutex
	listeners map[*downstream]bool
}

func (a *audience) join(st *downstream) {
	st.All = &a.unread
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners[st] = true
}

// leave removes a response and closes its Mailbox.
func (a *audience) leave(st *downstream) {
	st.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.listeners, st)
}

// bound cuts off clients while more than a.most bytes are queued, first the client that has read nothing for longest.
// It reports whether it has cut off any.
func (a *audience) bound() (cut bool) {
	for a.unread.Load() > a.most {
		a.mu.Lock()
		var victim *downstream
		var since time.Time
		for st := range a.listeners {
			if s, any := st.Waits(); any && (victim == nil || s.Before(since)) {
				victim, since = st, s
			}
		}
		a.mu.Unlock()
		if victim == nil {
			break
		}
		victim.Close()
		victim.cut()
		cut = true
	}
	return cut
}
