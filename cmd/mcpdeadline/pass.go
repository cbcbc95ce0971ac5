package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A proxy holds what all sessions share.
type proxy struct {
	*options
	calls  *toolcall.Settings
	drain  *toolcall.Drain
	logger *slog.Logger
	stderr io.Writer
	log    *callLog
	tasks  *task.Tasks // nil if no tool has a soft limit
	cont   *adapter.Continuation
	max    int // largest message, in bytes
	dial   dialer

	advised sync.Once // that the server's stdout is for messages
}

// A session connects one host with one server. Messages pass in the order in which they came, each
// direction on its own goroutine. The exception is the answer to a tool call, which the goroutine of
// the call passes on.
type session struct {
	*proxy
	name    string         // owner of the tasks; "" if requests stand alone
	deliver func(*message) // sends to the host; returns when the message is written or given up
	load    load

	mu       sync.Mutex
	up       upstream
	run      int           // number of the server's current run, from 1
	heard    bool          // this run has sent something
	ready    bool          // this run has been initialised, or the host will do that
	waiting  []*message    // messages for the run, kept until it is ready and not in doubt
	doubt    *doubt        // whether the run is alive; nil if nothing suggests otherwise
	over     bool          // the session has ended
	end      error         // why it ended, or nil
	refused  chan struct{} // closed when a request has been answered with end
	refusing sync.Once
	requests map[string]*inFlight
	tokens   map[string]*call
	ended    [1024]string // tokens of the calls that ended last
	endedAt  int
	asked    map[string]func()          // the server's requests to the host: called when they are answered
	own      map[string]chan<- *message // requests of the proxy to the server
	ownIDs   int
	waiter   *waiter         // nil if no tool has a soft limit
	theirs   map[string]bool // tools of the server with names that the waiter would have
	memory
}

// An inFlight is a request of the host that has not been answered.
type inFlight struct {
	method string
	call   *call                   // nil if it is no tool call
	here   context.CancelCauseFunc // cancels a request that the proxy answers itself; nil for others
}

func newSession(p *proxy, name string, deliver func(*message)) *session {
	s := &session{
		proxy: p, name: name, deliver: deliver,
		requests: make(map[string]*inFlight), tokens: make(map[string]*call),
		asked: make(map[string]func()), own: make(map[string]chan<- *message),
		refused: make(chan struct{}), theirs: make(map[string]bool),
	}
	if p.cont != nil {
		s.waiter = newWaiter(p.cont, "", p.host.plain)
	}
	return s
}

// waitTools returns the tools that wait for calls that were continued, or nil.
func (s *session) waitTools() *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiter
}

// fromHost passes on a message of the host. It is called by one goroutine at a time.
func (s *session) fromHost(ctx context.Context, m *message) {
	switch {
	case m.isRequest():
		if s.inUse(m.ID) {
			s.deliver(newMessage(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{
				"code": invalidRequest, "message": "the id " + string(m.ID) + " is in use by another request"}}))
			return
		}
		if s.answersItself(ctx, m) {
			return
		}
		in := &inFlight{method: m.Method}
		if m.Method == "tools/call" {
			m, in.call = s.newCall(m)
			if bad := s.taskCall(in.call).Refused(); bad != nil { // it must not reach the server
				reply := newMessage(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": bad})
				reply.about = string(m.ID)
				s.deliver(reply)
				return
			}
		}
		// The request is sent here and not on the goroutine of the execution, so that no later
		// message of the host overtakes it.
		if !s.ask(m, in) {
			s.deliver(failure(m.ID, s.refusal()))
		} else if in.call != nil {
			go in.call.supervise(ctx)
		}
	case m.Method == "notifications/cancelled":
		s.hostCancels(m)
	case m.isNotification():
		s.toServer(m)
	case m.isResponse():
		s.hostAnswers(m)
	default:
		s.toServer(m)
	}
}

// inUse reports whether a request with this id is in flight. The answers to two such requests could
// not be told apart, and cancelling one would cancel the other.
func (s *session) inUse(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := find(s.requests, string(id))
	return in != nil
}

// ask sends a request of the host to the server. It reports false if the session has ended.
func (s *session) ask(m *message, in *inFlight) bool {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return false
	}
	s.requests[string(m.ID)] = in
	if in.call != nil {
		s.tokens[string(in.call.token)] = in.call
	}
	s.queue(m)
	return true
}

// hostCancels handles the host's cancellation of a request.
func (s *session) hostCancels(m *message) {
	var params struct{ RequestID json.RawMessage }
	_ = json.Unmarshal(m.Params, &params)
	s.mu.Lock()
	in := s.requests[string(params.RequestID)]
	if in != nil && in.here != nil {
		s.mu.Unlock()
		in.here(errHostCancelled)
		return
	}
	if in != nil && in.call != nil && in.call.handed {
		s.mu.Unlock()
		return // answered with a task, which has its own request for cancelling
	}
	if in != nil && in.call == nil && in.method != "initialize" {
		delete(s.requests, string(params.RequestID)) // the host expects no answer
	}
	s.mu.Unlock()
	if in != nil && s.unsend(params.RequestID) {
		m = nil
		if in.call != nil {
			in.call.unsent.Store(true)
		}
	}
	// The call is cancelled before the server is told, so that an answer of the server to the
	// cancellation is not taken for the result.
	if in != nil && in.call != nil {
		in.call.cancel(errHostCancelled)
	}
	if m != nil {
		s.toServer(m)
	}
}

var errHostCancelled = errors.New("the host cancelled the call")

// unsend removes a request that still waits for a server. It reports whether there was one.
func (s *session) unsend(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.waiting {
		if m.isRequest() && bytes.Equal(m.ID, id) {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// toServer sends a message to the server, or keeps it until a server is ready.
func (s *session) toServer(m *message) {
	s.mu.Lock()
	s.queue(m)
}

// queue is toServer for a caller that holds s.mu. It unlocks s.mu.
func (s *session) queue(m *message) {
	s.remember(m)
	up := s.up
	switch {
	case s.over:
		up = nil
	case !s.ready, m.isRequest() && s.doubt != nil && s.kills(s.doubt.up):
		s.waiting = append(s.waiting, m)
		up = nil
	}
	s.mu.Unlock()
	if up != nil {
		up.send(m)
	}
}

// fromServer passes on a message of a run of the server. It is called by one goroutine, or, if the
// server is at a URL, by one goroutine per request.
func (s *session) fromServer(run int, m *message) {
	s.mu.Lock()
	if run != s.run || s.over {
		s.mu.Unlock()
		return // from a run that is being killed
	}
	s.mu.Unlock()
	m, text := sift(m)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		s.noise(text)
	}
	if m == nil {
		return
	}
	s.mu.Lock()
	s.heard = true
	s.prove()
	s.mu.Unlock()
	switch {
	case m.isResponse():
		s.serverAnswers(m)
	case m.isRequest():
		s.serverAsks(run, m)
	case m.Method == "notifications/progress":
		s.serverReports(m)
	case m.Method == "notifications/cancelled":
		s.serverCancels(run, m)
	case m.Method == "notifications/message":
		if s.alive.log {
			s.sign(m)
		}
		s.deliver(m)
	default:
		s.deliver(m)
	}
}

// sign records a sign of life: of the call that m belongs to, or of all calls if that is unknown or
// m is nil.
func (s *session) sign(m *message) {
	for _, c := range s.callsAbout(m) {
		c.beat(nil)
	}
}

// callsAbout returns the call that m belongs to, or all calls in flight if that is unknown or m is
// nil.
func (s *session) callsAbout(m *message) (calls []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != nil && m.about != "" {
		if in := s.requests[m.about]; in != nil && in.call != nil {
			calls = append(calls, in.call)
		}
		return calls
	}
	for _, in := range s.requests {
		if in.call != nil {
			calls = append(calls, in.call)
		}
	}
	return calls
}

func (s *session) serverAnswers(m *message) {
	id := string(m.ID)
	s.mu.Lock()
	if own, ok := s.own[id]; ok {
		delete(s.own, id)
		s.mu.Unlock()
		own <- m
		return
	}
	asked, in := find(s.requests, id)
	if in != nil && in.call == nil {
		delete(s.requests, asked)
	}
	s.mu.Unlock()
	if asked != id {
		m = m.withID(asked)
	}
	switch {
	case id == "null": // the answer to a message that the server could not read
		s.deliver(m)
	case in == nil: // cancelled or stopped, so nobody waits for it
	case in.call != nil:
		select {
		case in.call.answer <- m:
		default: // answered twice
		}
	default:
		s.deliver(s.amend(in.method, m))
	}
}

func (s *session) serverReports(m *message) {
	var params struct {
		ProgressToken json.RawMessage
		Progress      float64
		Total         float64
		Message       string
	}
	_ = json.Unmarshal(m.Params, &params)
	token := string(params.ProgressToken)
	s.mu.Lock()
	_, c := find(s.tokens, token)
	late := false
	if c == nil && token != "" {
		for _, ended := range s.ended {
			late = late || same(ended, token)
		}
	}
	s.mu.Unlock()
	switch {
	case late: // nothing follows the answer
	case c != nil:
		c.reported(m, params.Progress, params.Total, params.Message)
	default: // about another request, or a task
		s.deliver(m)
	}
}

// tooLong handles a message of the server that exceeds the limit. If it is an answer, the host gets
// an error in its place.
func (s *session) tooLong(run int, head, tail []byte, length int) {
	text := fmt.Sprintf("the server sent a message of %d bytes, which exceeds the limit of %d", length, s.max)
	s.logger.Warn(text)
	if id := idOf(head, tail); id != nil {
		s.fromServer(run, failure(id, text))
	}
}

// request sends a request of the proxy to a run of the server. The caller must call forget, whether
// or not an answer comes.
func (s *session) request(up upstream, method string, params any) (answer <-chan *message, forget func()) {
	c := make(chan *message, 1)
	s.mu.Lock()
	s.ownIDs++
	id := strconv.Quote("mcpdeadline " + ownName + " " + strconv.Itoa(s.ownIDs))
	s.own[id] = c
	s.mu.Unlock()
	up.send(request(json.RawMessage(id), method, params))
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, id)
	}
}
