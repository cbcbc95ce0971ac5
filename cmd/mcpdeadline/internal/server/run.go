package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// InitLimit is how long a server may take to answer initialize.
const InitLimit = 30 * time.Second

// A Run is one run of a server: a process, or a session over HTTP.
type Run interface {
	// Send queues a message and does not wait. After the end of the run it drops the message, or passes a request to
	// Unsent of the [Receiver].
	Send(m *jsonrpc.Message)
	// Await waits until the server has read most of the queued bytes, or the run has ended.
	Await()
	// Close ends the run as the protocol prescribes. If the run is a process, the process has ended when Close returns.
	Close()
	// Kill ends the run at once, with why as the reason, and does not wait for the end.
	Kill(why error)
	// Ended returns a channel that is closed when the run has ended and sends no more messages.
	Ended() <-chan struct{}
	// Why returns an error that says how the run ended. It may be called once the channel of Ended is closed.
	Why() error
	// Processes returns the processes of the server, or nil if it has none on this machine.
	Processes() Observable
}

// A Dialer starts a run of a server.
type Dialer func(Receiver) (Run, error)

// A Receiver holds the functions that a run calls, and its logger.
type Receiver struct {
	Message func(*jsonrpc.Message)
	Long    func(head, tail []byte, length int) // called for a message that exceeds the limit; see jsonrpc.Splitter
	Stderr  func()                              // called for output on stderr
	Unsent  func(*jsonrpc.Message)              // called with a request that the server did not accept, for the next run
	Log     *slog.Logger
}

// An Observable is a group of processes whose work can be observed.
type Observable interface {
	// Attend makes heartbeats on the socket of the processes renew the limits of the executions of ctx. It does nothing
	// if there is no socket.
	Attend(context.Context)
	// Observe makes the work of the processes renew the idle limits of the executions of ctx, until Stop is called on
	// the Observer. It returns an error if the processes cannot be observed.
	Observe(context.Context, procgroup.Activity) (Observer, error)
}

// An Observer observes the work of processes; see [procgroup.Observer].
type Observer interface {
	Tree() procgroup.ProcessList
	Stop()
}
