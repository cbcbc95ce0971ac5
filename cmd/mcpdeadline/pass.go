package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A proxy is what all sessions have in common.
type proxy struct {
	*options
	calls  *toolcall.Settings
	drain  *toolcall.Drain
	logger *slog.Logger
	log    *callLog
	tasks  *task.Tasks // nil where no call has a soft limit
	cont   *task.Continuation
	max    int // bytes of a message
	dial   dialer
}

// A session is one host with one server. Messages pass in the order in which they came, each
// direction on a goroutine of its own; but for the answers of tool calls, which the call's own
// goroutine passes on.
type session struct {
	*proxy
	name    string         // whose the tasks are; "" where requests stand alone
	deliver func(*message) // to the host; returns when it is written, or never will be
	load    load

	mu       sync.Mutex
	up       upstream
	run      int           // of the server, from 1
	heard    bool          // this run has sent something
	ready    bool          // it has been initialised, or the host does that
	waiting  []*message    // for it to be ready
	over     bool          // the session has ended
	end      error         // why, where that is an error
	refused  chan struct{} // closed when a request has been answered with that
	refusing sync.Once
	requests map[string]*inFlight
	tokens   map[string]*call
	ended    [1024]string // the tokens of the last calls that have ended
	endedAt  int
	asked    map[string]func()          // the server's requests to the host: what to do when they are answered
	own      map[string]chan<- *message // our requests to the server
	ownIDs   int
	memory
}

// inFlight is a request of the host that has not been answered.
type inFlight struct {
	method string
	call   *call                   // nil where it calls no tool
	here   context.CancelCauseFunc // of what the proxy answers itself, nil for all else
}

func newSession(p *proxy, name string, deliver func(*message)) *session {
	return &session{
		proxy: p, name: name, deliver: deliver,
		requests: make(map[string]*inFlight), tokens: make(map[string]*call),
		asked: make(map[string]func()), own: make(map[string]chan<- *message),
		refused: make(chan struct{}),
	}
}

// fromHost passes on what the host has sent. It is called by one goroutine.
func (s *session) fromHost(ctx context.Context, m *message) {
	switch {
	case m.isRequest():
		if s.inUse(m.ID) {
			s.deliver(newMessage(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{
				"code": invalidRequest, "message": "the id " + string(m.ID) + " is that of another request, which has not ended"}}))
			return
		}
		if s.answersItself(ctx, m) {
			return
		}
		s.remember(m)
		in := &inFlight{method: m.Method}
		if m.Method == "tools/call" {
			m, in.call = s.newCall(m)
		}
		// It goes to the server here, and not when the execution begins on its own goroutine,
		// so that nothing which the host sends after it gets there before it.
		if !s.ask(m, in) {
			s.deliver(failure(m.ID, s.refusal()))
		} else if in.call != nil {
			go in.call.supervise(ctx)
		}
	case m.Method == "notifications/cancelled":
		s.hostCancels(m)
	case m.isNotification():
		s.remember(m)
		s.toServer(m)
	case m.isResponse():
		s.hostAnswers(m)
	default:
		s.toServer(m)
	}
}

// inUse reports whether a request with this id goes on: the server's answers could not be told
// apart, and who cancelled one would cancel the other.
func (s *session) inUse(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := find(s.requests, string(id))
	return in != nil
}

// ask sends a request of the host's to the server, and reports false where the session has ended.
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

// hostCancels passes on that the host does not wait for an answer any more.
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
		return // it has been answered, with a task, which is cancelled in another way
	}
	if in != nil && in.call == nil && in.method != "initialize" {
		delete(s.requests, string(params.RequestID)) // an answer is not expected
	}
	s.mu.Unlock()
	if in != nil && s.unsend(params.RequestID) {
		m = nil
		if in.call != nil {
			in.call.unsent.Store(true)
		}
	}
	// First here: an answer that the server makes of it must not find somebody who takes it.
	if in != nil && in.call != nil {
		in.call.cancel(errHostCancelled)
	}
	if m != nil {
		s.toServer(m)
	}
}

var errHostCancelled = errors.New("the host has cancelled the call")

// unsend takes back a request that waits for a server, and reports whether there was one.
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

// toServer sends a message to the server, or keeps it until there is one that is ready.
func (s *session) toServer(m *message) {
	s.mu.Lock()
	s.queue(m)
}

// queue is toServer for who has locked the session. It unlocks it.
func (s *session) queue(m *message) {
	up := s.up
	switch {
	case s.over:
		up = nil
	case !s.ready:
		s.waiting = append(s.waiting, m)
		up = nil
	}
	s.mu.Unlock()
	if up != nil {
		up.send(m)
	}
}

// fromServer passes on what a run of the server has sent. It is called by one goroutine, or by
// one for each request of the host, over HTTP.
func (s *session) fromServer(run int, m *message) {
	s.mu.Lock()
	if run != s.run || s.over {
		s.mu.Unlock()
		return // from one that is being killed
	}
	s.heard = true
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

// sign is a sign of life of no call in particular; m is the message that is one, or nil.
func (s *session) sign(m *message) {
	for _, c := range s.callsAbout(m) {
		c.beat(nil)
	}
}

// callsAbout returns the calls that wait for the server, or only that which the message belongs to.
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
	case id == "null": // to what the server could not read
		s.deliver(m)
	case in == nil: // cancelled, or stopped: nobody waits for it
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
	default: // of another request, or of a task
		s.deliver(m)
	}
}

// is what it says then.
func (s *session) tooLong(run int, head, tail []byte, length int) {
	text := fmt.Sprintf("the server has sent a message of %d bytes, and the most that mcpdeadline passes on is %d", length, s.max)
	s.logger.Warn(text)
	if id := idOf(head, tail); id != nil {
		s.fromServer(run, failure(id, text))
	}
}

// request sends a request of the proxy's own to a run of the server. The answer comes if the
// server answers; forget is to be called in any case.
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
