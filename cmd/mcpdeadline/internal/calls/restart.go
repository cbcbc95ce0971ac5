package calls

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// start starts a run of the server. It sends each run after the first the messages with which the host has initialised
// the session, and waits for the answer to initialize.
func (s *Session) start(ctx context.Context) (server.Run, error) {
	run := s.run + 1             // only Serve, which calls start, changes s.run
	begun := make(chan struct{}) // closed when the run is registered; its first messages wait for that
	up, err := s.dial(server.Receiver{
		Message: func(m *jsonrpc.Message) { <-begun; s.fromServer(run, m) },
		Long:    func(head, tail []byte, length int) { <-begun; s.tooLong(run, head, tail, length) },
		Unsent:  s.sendAgain,
		Log:     s.Logger,
		Stderr: func() {
			if s.Alive.Stderr {
				s.sign(nil)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	s.load.Reset()
	s.mu.Lock()
	s.up, s.run, s.runAnswered, s.unsent, s.doubt = up, run, false, false, nil
	m := s.replay(s.waiting.messages)
	s.mu.Unlock()
	close(begun)
	if run == 1 {
		s.becomeReady(up)
		return up, nil
	}
	if m.initialize != nil {
		if err := s.initializeAgain(ctx, up, m); err != nil {
			if ctx.Err() == nil {
				up.Kill(err)
			}
			up.Close() // gives a server that was not killed time to end
			s.cancelQuestions()
			return nil, fmt.Errorf("after a restart: %w", err)
		}
	}
	s.becomeReady(up)
	for list, has := range m.lists {
		if has {
			s.Deliver(jsonrpc.Notification("notifications/"+list+"/list_changed", nil))
		}
	}
	s.Logger.Warn("server restarted")
	return up, nil
}

func (s *Session) initializeAgain(ctx context.Context, up server.Run, m memory) error {
	answer, forget := s.request(up, "initialize", m.initialize.Params, true)
	defer forget()
	select { // if the run has ended too, the session finds that next
	case a := <-answer:
		if a.Error != nil {
			var failed struct{ Message string }
			_ = adapter.Unmarshal(a.Error, &failed)
			return fmt.Errorf("the server answered initialize with %s", jsonrpc.Shorten(cmp.Or(failed.Message, string(a.Error))))
		}
	case <-up.Ended():
		return up.Why()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(server.InitLimit):
		return fmt.Errorf("the server did not answer initialize within %v", server.InitLimit)
	}
	if m.initialized != nil {
		again := *m.initialized
		again.Renewed = true
		up.Send(&again)
	}
	if m.level != nil {
		_, forget := s.request(up, "logging/setLevel", m.level, true)
		defer forget()
	}
	for _, subscribe := range m.subscribed {
		_, forget := s.request(up, subscribe.Method, subscribe.Params, true)
		defer forget()
	}
	return nil
}

// becomeReady sends a run the queued messages, and sets s.ready when the queue is empty. If the run accepts no more, the
// messages stay in the queue, and s.ready stays false.
func (s *Session) becomeReady(up server.Run) {
	s.release(up, func() []*jsonrpc.Message {
		waiting := s.waiting.take()
		s.ready = len(waiting) == 0
		return waiting
	})
}

// release sends a run the messages that next returns, in order, until it returns none, or the run accepts no more. It
// calls next with s.mu held, so that next decides about later messages before any can be sent or queued.
func (s *Session) release(up server.Run, next func() []*jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.unsent { // otherwise the run would return the messages again, for ever
		waiting := next()
		if len(waiting) == 0 {
			return
		}
		s.pass(up, waiting...)
	}
}
