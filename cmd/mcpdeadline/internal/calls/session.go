package calls

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A Session connects one host with one server. Messages pass in the order in which they came, each
// direction on its own goroutine. The exception is the answer to a tool call, which the goroutine of
// the call passes on.
type Session struct {
	*Proxy
	name    string                 // owner of the tasks; "" if requests stand alone
	Deliver func(*jsonrpc.Message) // queues a message for the host, and never waits
	send    func(*jsonrpc.Message) // is deliver for what is no answer to one of a batch
	Room    func()                 // waits until the host has read most of what is queued
	load    load
	ignored sync.Once               // that a budget cannot be read is logged
	fits    atomic.Pointer[Profile] // of the host
	dial    server.Dialer

	mu       sync.Mutex
	up       server.Run
	run      int           // number of the server's current run, from 1
	heard    bool          // this run has sent something
	ready    bool          // this run has been initialised, or the host will do that
	waiting  held          // messages for the run, kept until it is ready and not in doubt
	doubt    *doubt        // whether the run is alive; nil if nothing suggests otherwise
	over     bool          // the session has ended
	end      error         // why it ended, or nil
	asking   chan struct{} // a request waits for the next run
	Refused  chan struct{} // closed when a request has been answered with end
	refusing sync.Once
	requests map[string]*inFlight
	tokens   map[string]*call
	ended    [1024]string // tokens of the calls that ended last
	endedAt  int
	gone     [1024]string // ids of requests that were cancelled or stopped last
	goneAt   int
	stuck    int                                // messages of the server that wait for the host to read
	asked    map[string]func()                  // the server's requests to the host: called when they are answered
	own      map[string]chan<- *jsonrpc.Message // requests of the proxy to the server
	ownIDs   int
	waiter   *waiter         // nil if no tool has a soft limit
	theirs   map[string]bool // tools of the server with names that the proxy's would have
	batches  batches
	memory
}

// An inFlight is a request of the host that has not been answered.
type inFlight struct {
	method string
	pulse  *pulse                  // of its execution; nil if the proxy answers it
	over   chan struct{}           // closed when it has been answered or given up; nil if it is a tool call
	call   *call                   // nil if it is no tool call
	here   context.CancelCauseFunc // cancels a request that the proxy answers itself; nil for others
}

// NewSession returns a session, which Serve has yet to serve. name is the owner of its tasks, or "" if requests stand alone;
// deliver queues a message for the host, and never waits.
func NewSession(p *Proxy, name string, deliver func(*jsonrpc.Message)) *Session {
	s := &Session{
		Proxy: p, dial: p.Dials(), name: name, send: deliver, Room: func() {},
		requests: make(map[string]*inFlight), tokens: make(map[string]*call),
		asked: make(map[string]func()), own: make(map[string]chan<- *jsonrpc.Message),
		asking: make(chan struct{}, 1), Refused: make(chan struct{}), theirs: make(map[string]bool),
	}
	s.Deliver = s.gather
	s.waiting.room.L = &s.mu
	s.batches.open = make(map[string]*batch)
	s.fits.Store(&p.Profile)
	s.offer("")
	return s
}

// waitTools returns the tools that wait for calls that were continued, or nil.
func (s *Session) waitTools() *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiter
}

// inUse reports whether a request with this id is in flight. The answers to two such requests could
// not be told apart, and cancelling one would cancel the other.
func (s *Session) inUse(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := jsonrpc.Find(s.requests, string(id))
	return in != nil
}

// ask sends a request of the host to the server. It reports false if the session has ended.
func (s *Session) ask(m *jsonrpc.Message, in *inFlight) bool {
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

// about returns the pulse of the request that m belongs to, or those of all requests in flight if that is unknown or
// m is nil.
func (s *Session) about(m *jsonrpc.Message) (pulses []*pulse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, in := range s.requests {
		if in.pulse != nil && (m == nil || m.About == "" || m.About == id) {
			pulses = append(pulses, in.pulse)
		}
	}
	return pulses
}

// request sends a request of the proxy to a run of the server. The caller must call forget, whether
// or not an answer comes.
func (s *Session) request(up server.Run, method string, params any) (answer <-chan *jsonrpc.Message, forget func()) {
	c := make(chan *jsonrpc.Message, 1)
	s.mu.Lock()
	s.ownIDs++
	id := strconv.Quote("mcpdeadline " + ownName + " " + strconv.Itoa(s.ownIDs))
	s.own[id] = c
	s.mu.Unlock()
	up.Send(jsonrpc.Request(json.RawMessage(id), method, params))
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, id)
	}
}

// Busy reports whether a request of either side has no answer yet.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)+len(s.asked) > 0
}
