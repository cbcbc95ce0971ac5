package procgroup

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Listener is the socket of [Notify] for a command that is started by other means than [Start], such as package os. Its
// methods are safe for concurrent use.
type Listener struct {
	notices notices
	mu      sync.Mutex // of the list of those who attend
}

// Listen makes a socket, which hears what a process with its environment says from now on, in the protocol that [Notify]
// describes, until Close is called. On Windows the error wraps [errors.ErrUnsupported].
func Listen() (*Listener, error) {
	l := new(Listener)
	n := &l.notices
	if err := n.listen(context.Background(), nil); err != nil {
		return nil, err
	}
	n.ready, n.stopping = make(chan struct{}), make(chan struct{})
	n.cells.Store(new([]*pulse.Cell))
	n.begin()
	return l, nil
}

// Environ returns env, which it may change, with the variables of a command that has the idle limit and is stopped at the
// instant end. Variables of their names are removed. An idle limit of 0 and a zero end are none.
func (l *Listener) Environ(env []string, idle time.Duration, end time.Time) []string {
	return l.notices.environ(env, idle, end)
}

// Attend makes what is said count for the execution of ctx and for those that enclose it, until that execution ends, beside
// others that attend. An EXTEND_TIMEOUT_USEC from before does not count. Outside an execution Attend does nothing.
func (l *Listener) Attend(ctx context.Context) {
	cell := pulse.Of(ctx)
	if cell == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []*pulse.Cell{cell}
	for _, c := range *l.notices.cells.Load() {
		if c != cell && !c.Ended() {
			all = append(all, c)
		}
	}
	l.notices.cells.Store(&all)
}

// Close reads what is left in the socket, removes it, and returns what was said. It waits for a file system that does not
// answer for no longer than a second. It is called once.
func (l *Listener) Close() Notices {
	l.notices.end(time.Now().Add(collectTime))
	return l.notices.snapshot()
}
