package calls

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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

// A Session connects one host with one server. Messages are forwarded in the order in which they arrive, each direction
// on its own goroutine, except that the goroutine of a tool call forwards its answer.
type Session struct {
	*Proxy
	name    string                 // owner of the tasks; "" if requests stand alone
	Deliver func(*jsonrpc.Message) // queues a message for the host, and never waits
	Room    func()                 // waits until the host has read most of the queued bytes
	Forgone func(json.RawMessage)  // called with the id of a request that will not be answered, because the host has cancelled it
	load    alive.Load
	ignored sync.Once               // makes budgetOf log an unreadable budget once
	crowded sync.Once               // makes serverAsks log once that MaxQuestions was exceeded
	fits    atomic.Pointer[Profile] // the profile for the host
	dial    server.Dialer

	mu            sync.Mutex
	up            server.Run
	run           int           // number of the server's current run, from 1
	runAnswered   bool          // the run has sent a message
	ready         bool          // queued messages have been sent to the run; see becomeReady
	unsent        bool          // the run has returned a request of the host, and accepts no more; see sendAgain
	passing       int           // number of goroutines that send the run messages of the host; see pass
	passed        sync.Cond     // passing has decreased
	waiting       held          // messages of the host that are queued until the run is ready and not in doubt
	doubt         *doubt        // the check whether the run is alive; nil if none is under way
	over          bool          // the session has ended
	end           error         // why the session has ended; nil if the host or the proxy has ended it
	asking        chan struct{} // has a value when a request waits for the next run
	Refused       chan struct{} // closed when a request has been answered with end
	refusing      sync.Once
	requests      map[string]*inFlight
	tokens        map[string]*call
	ended         jsonrpc.Recent                     // progress tokens of calls that have ended
	unawaited     jsonrpc.Recent                     // ids of cancelled or stopped requests, whose answers are dropped
	unread        int                                // number of the server's messages that wait for the host to read
	hostQuestions map[string]func()                  // requests of the server to the host, by id; called when one ends
	own           map[string]chan<- *jsonrpc.Message // requests of the proxy to the server, by id; receives the answer
	waiter        *waittool.Tools                    // nil if no tool has a soft limit
	shadowed      map[string]bool                    // names of the proxy's tools that tools of the server have too
	batches       jsonrpc.Batches
	memory
}

// An inFlight is a request of the host that has not been answered.
type inFlight struct {
	method      string
	pulse       *alive.Pulse            // signs of life of its execution; nil if the proxy answers the request itself
	over        chan struct{}           // closed when the request has been concluded; nil if it is a tool call
	call        *call                   // nil if it is not a tool call
	cancelLocal context.CancelCauseFunc // cancels a request that the proxy answers itself; nil for others
	stopped     bool                    // the request was cancelled, or has reached a limit; see unsend
}

// A call is one tools/call request under its limits.
type call struct {
	s             *Session
	params        json.RawMessage
	id            json.RawMessage // the id of the host's request
	sent          json.RawMessage // the id of the newest request to the server
	tool          string
	wantsProgress bool            // the host has sent a progress token
	token         json.RawMessage // the progress token of the host, or one that the proxy has created
	budget        policy.Budget   // the time for which the host waits, from its request
	runsOn        bool            // the call may continue after it has been answered
	asking        time.Time       // when the newest request to the server was created
	version       string          // protocol version that the request states; "" before 2026-07-28

	state          json.RawMessage // requestState of the server's last answer; nil if it had none
	declared       bool            // the request declares that the host supports tasks
	taskParam      json.RawMessage // "task" in the params
	handleSent     bool            // the call has been answered with a handle; guarded by the mu of the session
	serverAnswered atomic.Bool     // the server has answered the newest request; cleared before the next is sent
	unsent         atomic.Bool     // the request was cancelled before it was sent to a server
	endless        atomic.Bool     // the call has begun, and no limit ends it if the server hangs

	began func() // ends the call's first membership in the Drain; called when toolcall.Do has joined

	answering sync.Mutex // guards leaves and answered
	leaves    []func()   // called when the call has been answered
	answered  bool       // the call has been answered, perhaps with a handle

	ctx     context.Context // done when the host no longer wants an answer
	cancel  context.CancelCauseFunc
	answer  chan *jsonrpc.Message // receives the server's answer; has a buffer of 1
	lost    chan struct{}         // closed when the server has ended, after lostErr has been set
	lostErr error
	losing  sync.Once

	pulse alive.Pulse
	report
	tree atomic.Pointer[procgroup.ProcessList] // the server's processes when a limit fired; nil until then
}

// A report records the progress notifications of a call that were sent to the host.
type report struct {
	out        sync.Mutex // guards the fields below; held while a notification is sent
	over       bool       // no more notifications are sent
	reportSent bool       // a notification has been sent
	last       float64    // the progress of the last notification
	raised     bool       // last was chosen by the proxy
	total      float64    // of the server's last notification
	message    string     // of the server's last notification
	lastSent   time.Time
	ticker     *time.Timer
	beats      uint64        // number of beats at the last keep-alive
	run        *adapter.Task // decides whether a notification may still be sent; nil means always
}

// A doubt is the check whether a run of the server is still alive. It begins when a request is stopped at its limit or
// a call is aborted, and ends when the run sends any message, ends, or is killed. If the doubt may kill the run,
// requests of the host are queued meanwhile, because a dead server would never answer them.
type doubt struct {
	up     server.Run
	proved chan struct{} // closed when the run has sent a message
	over   bool          // proved is closed; guarded by the mu of the session
}

var errHostCancelled = errors.New("the host cancelled the call")

// ownPrefix begins the ids and tokens that this process creates, as JSON.
var ownPrefix = `"mcpdeadline ` + rand.Text() + " "

var ids atomic.Uint64

// newID returns a unique id or progress token.
func newID() json.RawMessage { return fmt.Appendf(nil, `%s%d"`, ownPrefix, ids.Add(1)) }

// profile returns the profile for the host.
func (s *Session) profile() *Profile { return s.fits.Load() }

// handles returns the store of the calls that continue after their answer, or nil if no tool has a soft limit.
func (s *Session) handles() *task.Tasks {
	if s.profile().Continuation == nil {
		return nil
	}
	return s.Tasks
}

// waitTools returns the tools for continued calls, or nil if no tool has a soft limit.
func (s *Session) waitTools() *waittool.Tools {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiter
}

// inUse reports whether a request with the given id is in flight. A second request with that id must be refused: the
// answers could not be told apart, and a cancellation of one would cancel both.
func (s *Session) inUse(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := jsonrpc.Find(s.requests, string(id))
	return in != nil
}

// pulsesOf returns the pulse of the request that m belongs to, or the pulses of all requests in flight if m is nil or
// does not say to which request it belongs. It leaves out requests that the proxy answers itself, which have no pulse.
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

// sign records a sign of life of the request that m belongs to, or of all requests in flight; see pulsesOf.
func (s *Session) sign(m *jsonrpc.Message) {
	for _, p := range s.pulsesOf(m) {
		p.Beat(nil)
	}
}

// Busy reports whether requests of the host (asked) and requests of the server (asks) are waiting for answers.
func (s *Session) Busy() (asked, asks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests) > 0, len(s.hostQuestions) > 0
}

// conclude removes a request that is not a tool call, and reports whether the request was in flight. If late is true,
// an answer of the server that arrives later is dropped without a log record. The caller holds s.mu.
func (s *Session) conclude(id string, in *inFlight, late bool) bool {
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

// isGone reports whether an answer with the given id may arrive late: the request was cancelled or stopped, or was a
// request of the proxy itself. The caller holds s.mu.
func (s *Session) isGone(id string) bool {
	return strings.HasPrefix(id, ownPrefix) || s.unawaited.Has(id)
}

// forget removes the call from the session, which then drops messages of the server about the call.
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

// lose ends the wait for the server's answer with the error why, because the server has ended. Only the first call of
// lose has an effect.
func (c *call) lose(why error) {
	c.losing.Do(func() {
		c.lostErr = why
		close(c.lost)
	})
}

// processes returns the processes of the current run, or nil if there is no run or its server is at a URL.
func (s *Session) processes() server.Observable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up == nil {
		return nil
	}
	return s.up.Processes()
}

// refusal returns the text with which a request after the end of the session is refused, and closes s.Refused when it
// returns.
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
