package main

import "os"

// An upstream is one run of the server: a process, or a session over HTTP.
type upstream interface {
	// send queues a message. After the end it does nothing.
	send(m *message)
	// close ends the run as the protocol has it, and returns when it has ended.
	close()
	// kill ends it at once, and returns before it has ended.
	kill(why error)
	// ended is closed when the run has ended and nothing comes from it any more.
	ended() <-chan struct{}
	// why says how it ended, once it has.
	why() error
	// process is the server's, nil where there is none.
	process() *os.Process
}

// A dialer starts a run of the server.
type dialer func(r receiver) (upstream, error)

// A receiver is called with what comes from a run.
type receiver struct {
	message func(*message)
	long    func(head, tail []byte, length int) // of a message that is too long
	stderr  func()                              // when something was written there: a sign of life
	unsent  func(*message)                      // which the server has not taken, and the next run may
}
