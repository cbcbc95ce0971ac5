package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// memory is what has to be sent again to a server that is started again.
type memory struct {
	initialize  *jsonrpc.Message            // the host's request
	initialized *jsonrpc.Message            // the notification after it
	lists       map[string]bool             // lists that the server has, by its capabilities
	version     string                      // of the protocol
	ownTasks    bool                        // the server supports tasks itself
	level       json.RawMessage             // params of logging/setLevel
	subscribed  map[string]*jsonrpc.Message // resources/subscribe requests, by their params
}

// remember keeps messages of the host that hold for the rest of the session. The caller holds s.mu,
// and under the same lock sends the message or lets it wait, so that replay knows which of the two.
func (s *Session) remember(m *jsonrpc.Message) {
	switch m.Method {
	case "initialize":
		s.memory = memory{initialize: m, subscribed: make(map[string]*jsonrpc.Message)}
	case "notifications/initialized":
		s.initialized = m
	case "logging/setLevel":
		s.level = m.Params
	case "resources/subscribe":
		if s.subscribed != nil {
			s.subscribed[string(m.Params)] = m
		}
	case "resources/unsubscribe":
		delete(s.subscribed, string(m.Params))
	}
}

// replay returns what a new run has to be sent of it. A request that waits for the run is sent
// because it waits. The caller holds s.mu.
func (s *Session) replay() memory {
	m := s.memory
	m.subscribed = maps.Clone(m.subscribed)
	for _, w := range s.waiting.messages {
		switch w.Method {
		case "initialize":
			m.initialize, m.initialized = nil, nil
		case "notifications/initialized":
			m.initialized = nil
		case "logging/setLevel":
			m.level = nil
		case "resources/subscribe":
			delete(m.subscribed, string(w.Params))
		}
	}
	return m
}

// Bounds of the attempts to start a server.
const (
	firstDelay = time.Second // between two attempts; doubled each time
	mostDelay  = 30 * time.Second
	lasted     = 10 * time.Second // a run that lasted as long resets the delay
	mostTries  = 4                // failed attempts in a row before the proxy gives up
)

// Serve runs the session's server, and starts it again when it has ended, until ctx is done. It
// returns an error if the server cannot be started, the first time or again; by then everything that
// waits has been answered.
func (s *Session) Serve(ctx context.Context) error {
	short, failed := 0, 0 // in a row
	for {
		begun := time.Now()
		up, err := s.start(ctx)
		if err == nil {
			failed = 0
			select {
			case <-up.Ended():
				err = up.Why()
			case <-ctx.Done():
				up.Close()
				return s.finish(nil)
			}
			if s.neverHeard() {
				return s.finish(&startError{err})
			}
			s.lose("the server ended: "+err.Error(), true)
		} else if failed++; s.first() || failed == mostTries && !s.Remote {
			return s.finish(&startError{err})
		} else if s.Remote {
			s.failWaiting("no new session with the server: " + err.Error())
		}
		s.Logger.Warn("server ended", "error", err)
		if short++; time.Since(begun) > lasted {
			short = 0
		}
		delay := time.Duration(0)
		if short > 1 {
			delay = min(firstDelay<<min(short-2, 10), mostDelay)
		}
		var asking <-chan struct{}
		if s.Remote { // a request is reason enough for an attempt, and costs no more than it would by itself
			asking = s.asking
		}
		select {
		case <-ctx.Done():
		case <-asking:
		case <-time.After(delay):
		}
		if ctx.Err() != nil { // also where the delay has passed: nobody needs another run
			return s.finish(nil)
		}
	}
}

// failWaiting answers the requests that wait for the next run with an error.
func (s *Session) failWaiting(why string) {
	s.mu.Lock()
	select {
	case <-s.asking:
	default:
	}
	failed := make(map[string]*inFlight)
	s.waiting.remove(func(m *jsonrpc.Message) bool {
		id := string(m.ID)
		in := s.requests[id]
		if !m.IsRequest() || in == nil {
			return m.IsRequest()
		}
		if failed[id] = in; in.call == nil {
			s.concludeLocked(id, in, false)
		}
		return true
	})
	s.mu.Unlock()
	for id, in := range failed {
		if in.call == nil {
			s.Deliver(jsonrpc.Failure(json.RawMessage(id), why))
		} else {
			in.call.lose(errors.New(why))
		}
	}
}

// hurry notes that a request waits for the next run.
func (s *Session) hurry() {
	select {
	case s.asking <- struct{}{}:
	default:
	}
}

// A startError reports a server that ended before it sent anything.
type startError struct{ err error }

func (e *startError) Error() string { return "cannot start the server: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// first reports whether no run of the server has begun yet.
func (s *Session) first() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run == 0
}

// neverHeard reports whether this is the first run and it has sent nothing.
func (s *Session) neverHeard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run == 1 && !s.heard
}

// start starts a run of the server. It initialises a later run as the host did the first.
func (s *Session) start(ctx context.Context) (server.Run, error) {
	s.mu.Lock()
	run := s.run + 1
	s.mu.Unlock()
	begun := make(chan struct{}) // the first messages wait until the run is registered
	up, err := s.dial(server.Receiver{
		Message: func(m *jsonrpc.Message) { <-begun; s.fromServer(run, m) },
		Long:    func(head, tail []byte, length int) { <-begun; s.tooLong(run, head, tail, length) },
		Unsent:  s.waitAgain,
		Run:     run,
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
	s.load.reset()
	s.mu.Lock()
	s.up, s.run, s.heard, s.doubt = up, run, false, nil
	m := s.replay()
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
			up.Close() // with the time that any other has, if the host has gone
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
	answer, forget := s.request(up, "initialize", m.initialize.Params)
	defer forget()
	limit := time.NewTimer(server.InitLimit)
	defer limit.Stop()
	select {
	case a := <-answer:
		if a.Error != nil {
			return fmt.Errorf("the server answered initialize with %s", inShort(a.Error))
		}
	case <-up.Ended():
		return up.Why()
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("the server did not answer initialize within %v", server.InitLimit)
	}
	if m.initialized != nil {
		up.Send(m.initialized)
	}
	if m.level != nil {
		_, forget := s.request(up, "logging/setLevel", m.level)
		defer forget()
	}
	for _, subscribe := range m.subscribed {
		_, forget := s.request(up, subscribe.Method, subscribe.Params)
		defer forget()
	}
	return nil
}

// waitAgain keeps a request that a run did not accept for the next run.
func (s *Session) waitAgain(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[string(m.ID)] != nil {
		s.waiting.add(m)
		s.hurry()
	}
}

// inShort returns the text of a JSON-RPC error.
func inShort(failed json.RawMessage) string {
	var e struct{ Message string }
	if adapter.Unmarshal(failed, &e) != nil || e.Message == "" {
		return short(failed)
	}
	return jsonrpc.Shorten(e.Message)
}

// becomeReady sends the messages that have waited for the server.
func (s *Session) becomeReady(up server.Run) {
	for {
		s.mu.Lock()
		waiting := s.waiting.take()
		if len(waiting) == 0 {
			s.ready = true
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, m := range waiting {
			s.pass(up, m)
		}
	}
}

// lose answers the requests in flight when the server ended. Requests that wait for the next run stay.
func (s *Session) lose(why string, again bool) {
	s.mu.Lock()
	s.up, s.ready, s.doubt = nil, false, nil
	waits := make(map[string]bool)
	for _, m := range s.waiting.messages {
		if m.IsRequest() && again {
			waits[string(m.ID)] = true
		}
	}
	lost := make(map[string]*inFlight)
	for id, in := range s.requests {
		if waits[id] || in.here != nil {
			continue
		}
		if lost[id] = in; in.call == nil {
			s.concludeLocked(id, in, false)
		}
	}
	asked := s.asked
	s.asked = make(map[string]func())
	hostEnded := s.over && s.end == nil
	s.mu.Unlock()

	for id, in := range lost {
		if in.call == nil {
			s.Deliver(jsonrpc.Failure(json.RawMessage(id), why))
			continue
		}
		if hostEnded { // as Shutdown does it, which may come at the same instant
			in.call.cancel(toolcall.ErrShutdown)
			in.call.lose(toolcall.ErrShutdown)
			continue
		}
		what := why
		if again {
			what += "\nIt is being restarted. The call was not repeated, and may have had an effect."
		}
		in.call.lose(errors.New(what))
	}
	for id, answered := range asked {
		answered()
		s.Deliver(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id), "reason": "the server ended"}))
	}
}

// finish ends the session. Later requests are refused.
func (s *Session) finish(err error) error {
	s.mu.Lock()
	s.over, s.end = true, err
	s.waiting.room.Broadcast()
	waits := len(s.requests) > 0
	s.mu.Unlock()
	s.lose(s.why(), false)
	s.mu.Lock()
	s.waiting.take()
	s.mu.Unlock()
	if s.Tasks != nil {
		adapter.EndSession(s.Tasks, s.name)
	}
	if waits {
		s.refusing.Do(func() { close(s.Refused) })
	}
	return err
}

// refusal returns the error for a request that comes after the end of the session.
func (s *Session) refusal() string {
	defer s.refusing.Do(func() { close(s.Refused) })
	return s.why()
}

func (s *Session) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end.Error()
	}
	return "mcpdeadline is shutting down"
}

// processes returns those of the server, or nil if there are none at the moment.
func (s *Session) processes() server.Observable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up == nil {
		return nil
	}
	return s.up.Processes()
}

// short returns a JSON value, cut to a length that suits a message.
func short(value json.RawMessage) string {
	if len(value) > 60 {
		return strings.ToValidUTF8(string(value[:60]), "") + "..."
	}
	return string(value)
}
