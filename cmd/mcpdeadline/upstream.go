package main

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// An upstream is one run of the server: a process, or a session over HTTP.
type upstream interface {
	// send queues a message and does not wait. It does nothing after the end of the run.
	send(m *jsonrpc.Message)
	// await waits until the server has read most of what is queued, or the run has ended.
	await()
	// close ends the run as the protocol describes it, and returns when it has ended.
	close()
	// kill ends the run at once. It does not wait for the end.
	kill(why error)
	// ended returns a channel that is closed when the run has ended and no more messages come.
	ended() <-chan struct{}
	// why returns how the run ended. It may be called once ended is closed.
	why() error
	// processes returns those of the server, or nil if it has none here.
	processes() observable
}

// A dialer starts a run of the server.
type dialer func(r receiver) (upstream, error)

// A receiver is called with the output of a run.
type receiver struct {
	message  func(*jsonrpc.Message)
	long     func(head, tail []byte, length int) // called for a message that exceeds the limit
	stderr   func()                              // called for output on stderr, a sign of life
	unsent   func(*jsonrpc.Message)              // called with a request that the server did not accept, for the next run
	run      int                                 // number of the run, from 1
	handover *handover                           // between a run and the next one
	log      *slog.Logger
}
