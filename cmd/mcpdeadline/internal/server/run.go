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
	// Send queues a message and does not wait. It does nothing after the end of the run.
	Send(m *jsonrpc.Message)
	// Await waits until the server has read most of what is queued, or the run has ended.
	Await()
	// Close ends the run as the protocol describes it. A process has ended when it returns.
	Close()
	// Kill ends the run at once. It does not wait for the end.
	Kill(why error)
	// Ended returns a channel that is closed when the run has ended and no more messages come.
	Ended() <-chan struct{}
	// Why returns how the run ended. It may be called once Ended is closed.
	Why() error
	// Processes returns the processes of the server, or nil if it has none on this machine.
	Processes() Observable
}

// A Dialer starts a run of a server.
type Dialer func(Receiver) (Run, error)

// A Receiver is called with the output of a run.
type Receiver struct {
	Message func(*jsonrpc.Message)
	Long    func(head, tail []byte, length int) // called for a message that exceeds the limit
	Stderr  func()                              // called for output on stderr, a sign of life
	Unsent  func(*jsonrpc.Message)              // called with a request that the server did not accept, for the next run
	Run     int                                 // number of the run, from 1
	Log     *slog.Logger
}

// An Observable stands for processes whose work can be seen.
type Observable interface {
	// Attend makes what the processes say on their socket count for the executions of ctx, if they have one.
	Attend(context.Context)
	// Observe makes the work of the processes a sign of life of the executions of ctx, until Stop.
	Observe(context.Context, procgroup.Activity) (Observer, error)
}

// An Observer looks at processes; see [procgroup.Observer].
type Observer interface {
	Tree() procgroup.ProcessList
	Stop()
}
