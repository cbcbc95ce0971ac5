package front

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// Bounds of what waits for HTTP clients that do not read, in bytes.
const (
	MaxUnsent  = 1 << 20 // on a stream of notifications, or while there is none: what comes then is dropped
	maxAnswers = 4 << 20 // on one response: progress and the like that comes then is dropped
)

// A downstream is a response on which messages are sent.
type downstream struct {
	*jsonrpc.Mailbox
	call bool
	cut  func() // ends a write that waits for the client
}

// An audience holds the open responses, whose clients may not read.
type audience struct {
	unread atomic.Int64 // bytes
	most   int64        // unread bytes beyond which the client that has read nothing for longest is cut off

	mu        sync.Mutex
	listeners map[*downstream]bool
}

func (a *audience) join(st *downstream) {
	st.All = &a.unread
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		a.listeners = make(map[*downstream]bool)
	}
	a.listeners[st] = true
}

// leave closes a response.
func (a *audience) leave(st *downstream) {
	st.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.listeners, st)
}

// bound cuts off the clients that have read nothing for longest, while too much waits. It reports whether it cut any.
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
