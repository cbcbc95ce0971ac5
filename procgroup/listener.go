package procgroup

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Listener is the socket of [Notify] for a command that is started by other means than [Start], such as package
// os. Its methods are safe for concurrent use.
type Listener struct {
	notices notices
	mu      sync.Mutex // guards the list of the executions that attend
}

// Listen makes a socket that receives the messages of processes with its environment, in the protocol that [Notify]
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

// Environ returns env, which it may change, with the variables of a command that has the idle limit and is stopped
// at the instant end. Other variables with these names are removed. An idle of 0 means no idle limit, and a zero
// end no deadline.
func (l *Listener) Environ(env []string, idle time.Duration, end time.Time) []string {
	return l.notices.environ(env, idle, end)
}

// Attend makes messages count for the execution of ctx and for those that enclose it, until the execution of ctx
// ends. Several executions may attend. An earlier EXTEND_TIMEOUT_USEC does not count. Outside an execution Attend
// does nothing.
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

// Close reads what is left in the socket, removes the socket, and returns what was said. It waits at most a second
// for a file system that does not answer. Call Close once.
func (l *Listener) Close() Notices {
	l.notices.end(time.Now().Add(collectTime))
	return l.notices.snapshot()
}
