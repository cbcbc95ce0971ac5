package calls

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/waittool"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Session connects one host with one server. Messages pass in the order in which they came, each
// direction on its own goroutine. The exception is the answer to a tool call, which the goroutine of
// the call passes on.
type Session struct {
	*Proxy
	name    string                 // owner of the tasks; "" if requests stand alone
	Deliver func(*jsonrpc.Message) // queues a message for the host, and never waits
	Room    func()                 // waits until the host has read most of what is queued
	load    alive.Load
	ignored sync.Once               // limits the log record about a budget that cannot be read to one
	fits    atomic.Pointer[Profile] // of the host
	dial    server.Dialer

	mu            sync.Mutex
	up            server.Run
	run           int           // number of the server's current run, from 1
	runAnswered   bool          // this run has sent something
	ready         bool          // this run has been initialised, or the host will do that
	waiting       held          // messages for the run, kept until it is ready and not in doubt
	doubt         *doubt        // whether the run is alive; nil if nothing suggests otherwise
	over          bool          // the session has ended
	end           error         // why it ended, or nil
	asking        chan struct{} // a request waits for the next run
	Refused       chan struct{} // closed when a request has been answered with end
	refusing      sync.Once
	requests      map[string]*inFlight
	tokens        map[string]*call
	ended         jsonrpc.Recent                     // tokens of the calls that ended
	unawaited     jsonrpc.Recent                     // ids of requests that were cancelled or stopped: nobody waits for their answers any more
	unread        int                                // number of messages of the server that wait for the host to read
	hostQuestions map[string]func()                  // the server's requests to the host: called when they are answered
	own           map[string]chan<- *jsonrpc.Message // requests of the proxy to the server
	ownIDs        int
	waiter        *waittool.Tools // nil if no tool has a soft limit
	shadowed      map[string]bool // names of the proxy's tools that tools of the server have already
	batches       jsonrpc.Batches
	memory
}

// An inFlight is a request of the host that has not been answered.
type inFlight struct {
	method      string
	pulse       *alive.Pulse            // of its execution; nil if the proxy answers it
	over        chan struct{}           // closed when it has been answered or given up; nil if it is a tool call
	call        *call                   // nil if it is not a tool call
	cancelLocal context.CancelCauseFunc // cancels a request that the proxy answers itself; nil for others
}

// A call is one tools/call request under its limits.
type call struct {
	s             *Session
	params        json.RawMessage
	id            json.RawMessage // of the host's request
	sent          json.RawMessage // the id that was sent to the server last
	tool          string
	wantsProgress bool            // the host has asked for progress
	token         json.RawMessage // progress token: that of the host, or one of the proxy
	budget        policy.Budget   // the time for which the host says that it waits
	runsOn        bool            // the call may run on after the host has got an answer
	asking        time.Time       // when the server was to be asked last
	version       string          // protocol version that the request states; "" before 2026-07-28

	state          json.RawMessage // requestState of the server's last answer, if that asked a question
	declared       bool            // the host supports tasks, by its capabilities
	taskParam      json.RawMessage // "task" in the params
	handleSent     bool            // the host has got a handle; guarded by the session's lock
	serverAnswered atomic.Bool     // the server has answered what was sent last
	unsent         atomic.Bool     // cancelled before the request reached a server
	endless        atomic.Bool     // the call has begun, and no limit ends it if the server hangs

	began func() // the drain knows the execution of the call

	answering sync.Mutex
	leaves    []func() // called when the call has been answered
	answered  bool     // the call has been answered

	ctx     context.Context // done when the host no longer wants an answer
	cancel  context.CancelCauseFunc
	answer  chan *jsonrpc.Message // at most one
	lost    chan struct{}         // closed when the server has ended, after lostErr has been set
	lostErr error
	losing  sync.Once

	pulse alive.Pulse
	report
	tree atomic.Pointer[procgroup.ProcessList] // when a limit fired; the execution may end before it is known
}

// A report records what the host has been sent about a running call.
type report struct {
	out        sync.Mutex // held while a notification is sent
	over       bool       // nothing more is sent
	reportSent bool       // something has been sent
	last       float64    // the progress that was sent last
	raised     bool       // last was chosen by the proxy
	total      float64
	message    string
	lastSent   time.Time
	ticker     *time.Timer
	beats      uint64        // number of beats at the last keep-alive
	run        *adapter.Task // decides whether the host may still get reports; nil means always
}

// A doubt is the check whether a run of the server is still alive. It begins when a call is stopped, and ends when
// the run sends anything at all, ends, or is killed. Meanwhile requests of the host wait, because a dead server would
// never answer them.
type doubt struct {
	up     server.Run
	proved chan struct{} // closed when the run has said something
	over   bool          // proved is closed; guarded by the session's lock
}

var errHostCancelled = errors.New("the host cancelled the call")

// ownName makes the ids and tokens of this process unique.
var ownName = rand.Text()

var tokens atomic.Uint64

// profile returns the profile for the host.
func (s *Session) profile() *Profile { return s.fits.Load() }

// handles returns the store of the calls that outlive their answer, or nil if no call does.
func (s *Session) handles() *task.Tasks {
	if s.profile().Continuation == nil {
		return nil
	}
	return s.Tasks
}

// waitTools returns the tools that wait for calls that were continued, or nil if no tool has a soft limit.
func (s *Session) waitTools() *waittool.Tools {
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

// pulsesOf returns the pulse of the request that m belongs to, or the pulses of all requests in flight if the request
// is unknown or m is nil.
func (s *Session) pulsesOf(m *jsonrpc.Message) (pulses []*alive.Pulse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, in := range s.requests {
		if in.pulse != nil && (m == nil || m.About == "" || m.About == id) {
			pulses = append(pulses, in.pulse)
		}
	}
	return pulses
}

// sign records a sign of life of the call that m belongs to, or of all calls if the call is unknown or
// m is nil.
func (s *Session) sign(m *jsonrpc.Message) {
	for _, p := range s.pulsesOf(m) {
		p.Beat(nil)
	}
}

// Busy reports whether a request of the host has no answer yet, and whether a request of the server has none.
func (s *Session) Busy() (asked, asks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests) > 0, len(s.hostQuestions) > 0
}

// conclude removes a request that is not a tool call. It reports whether the request was still in flight. If late is
// true, the server may still answer it.
func (s *Session) conclude(id string, in *inFlight, late bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.concludeLocked(id, in, late)
}

// concludeLocked is conclude for a caller that holds s.mu.
func (s *Session) concludeLocked(id string, in *inFlight, late bool) bool {
	if s.requests[id] != in {
		return false
	}
	delete(s.requests, id)
	if in.over != nil {
		close(in.over)
	}
	if late {
		s.unawaited.Add(id)
	}
	return true
}

// isGone reports whether an id is that of a request that was cancelled or stopped, so that nobody waits for its
// answer. The caller holds s.mu.
func (s *Session) isGone(id string) bool {
	return strings.HasPrefix(id, `"mcpdeadline `+ownName) || s.unawaited.Has(id)
}

// forget removes the call from the session: later messages of the server about it are dropped.
func (c *call) forget() {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, string(c.sent))
	if !c.serverAnswered.Load() {
		s.unawaited.Add(string(c.sent))
	}
	delete(s.tokens, string(c.token))
	s.ended.Add(string(c.token))
}

// lose ends the wait for an answer with an error, because the server has ended. Only the first call has an effect.
func (c *call) lose(why error) {
	c.losing.Do(func() {
		c.lostErr = why
		close(c.lost)
	})
}

// processes returns the processes of the server, or nil if there are none at the moment.
func (s *Session) processes() server.Observable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up == nil {
		return nil
	}
	return s.up.Processes()
}

// refusal returns the error for a request that comes after the end of the session.
func (s *Session) refusal() string {
	defer s.refusing.Do(func() { close(s.Refused) })
	return s.endReason()
}

func (s *Session) endReason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end.Error()
	}
	return "mcpdeadline is shutting down"
}
