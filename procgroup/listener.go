package procgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// A Listener provides the socket of [Notify] for a command that [Start] does not start, such as a command of package
// os. Its methods are safe for concurrent use.
type Listener struct {
	notices notices
	mu      sync.Mutex // held while Attend replaces notices.cells
}

// Listen creates a socket that receives messages in the protocol of [Notify] until Close is called. The variables of
// [Listener.Environ] pass its address to processes. On Windows, and on other systems without such sockets, the error
// wraps [errors.ErrUnsupported]. Listen returns an error if the file system of the socket, which is /dev/shm on Linux,
// or TMPDIR, does not answer within 5 s.
func Listen() (*Listener, error) {
	l := new(Listener)
	n := &l.notices
	ctx, cancel := context.WithTimeout(context.Background(), fileTime)
	defer cancel()
	if err := n.listen(ctx, nil); errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("procgroup: Listen: %w", patient.ErrNoAnswer)
	} else if err != nil {
		return nil, err
	}
	n.cells.Store(new([]*pulse.Cell))
	n.begin()
	return l, nil
}

// Environ returns env, which it may change, with the variables of [Notify] for a command that has the idle limit idle
// and whose total limit expires at end. It first removes the variables of env with these names, and WATCHDOG_PID. An
// idle of less than 1 µs means that there is no idle limit, and a zero end that there is no total.
func (l *Listener) Environ(env []string, idle time.Duration, end time.Time) []string {
	return l.notices.environ(env, idle, end)
}

// Attend makes later messages take effect on the execution that ctx belongs to and on all enclosing ones, as [Notify]
// describes, until that execution ends. Further calls add further executions. An EXTEND_TIMEOUT_USEC from before the
// call has no effect on the added execution. If ctx belongs to no execution, Attend does nothing.
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

// Close reads the messages that are left in the socket, at most 1000, removes the socket, and returns the states that
// all messages have set. It waits at most a second for a file system that does not answer. Call Close once.
func (l *Listener) Close() Notices {
	l.notices.end(time.Now().Add(collectTime))
	return l.notices.snapshot()
}
