package mcpsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

type followKey struct{}

// A followed is a call that may become a task. The SDK sends each of its requests as a tools/call, and gets
// a tool's result for each. The wrapped transport takes the followed from the context, and translates these
// requests to the methods for tasks, and their answers back. No two requests overlap.
type followed struct {
	mu sync.Mutex
	followState
	answered map[string]bool // keys of the questions that have been answered
	reader   *statusReader   // delivers notifications to news; nil before the first request
	news     chan legacyTask // holds the newest notification
}

// A followState is what is known of a followed.
type followState struct {
	method  string // the method of the newest request
	id      string // the id of the task; "" before the handle
	status  task.Status
	message string // the message that the server has sent with the status
	poll    time.Duration
	began   time.Time       // when the handle was received
	expires time.Time       // when the server deletes the task; zero if that is not known
	answers json.RawMessage // answers that the server has not acknowledged
	failed  error           // the error with which the task has failed
	cut     bool            // the newest answer was cut off
	// denied reports that the newest request was refused for want of authorization. The SDK then asks its OAuthHandler,
	// and returns the same error as for a refused connection if it gets no authorization.
	denied bool

	next string // the method of the next request: methodGet or methodResult

	legacy  bool // the task is one of protocol 2025-11-25
	refused bool // the newest tasks/result was answered with -32603

	listening bool            // the request is no tools/call: only its result is recorded, in heard
	heard     json.RawMessage // the undecoded result
}

func (f *followed) now() followState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followState
}

func (f *followed) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// lost reports whether a request that failed with err should be sent again: its answer was cut off, the error is
// transient, or the server has answered with the code -32603. It returns false if the request was refused for want of
// authorization.
func (f *followed) lost(err error) bool {
	s := f.now()
	if s.denied {
		return false // another try would ask the OAuthHandler, or the person, again
	}
	var wire *jsonrpc.Error
	return s.cut || transient(err) || errors.As(err, &wire) && wire.Code == jsonrpc.CodeInternalError
}

// cancelled returns the error of a task that another client or the server has cancelled.
func (f *followed) cancelled() error {
	message := f.now().message
	if message == "" {
		return task.ErrCancelled
	}
	return fmt.Errorf("%w: %s", task.ErrCancelled, message)
}

// answeredWith reports whether err is the error with which the task has failed.
func (f *followed) answeredWith(err error) bool {
	var wire *jsonrpc.Error
	return f.now().failed != nil && errors.As(err, &wire)
}

// maxTTL is a century, in milliseconds.
const maxTTL = 100 * 365 * 24 * 3600e3

// noteSchedule records the poll interval of the server, and when the server deletes the task. poll and ttl are in
// milliseconds; a poll of 0 means 1 s, and a nil ttl means that the time is not known. The caller holds mu.
func (f *followed) noteSchedule(poll float64, ttl *float64) {
	f.poll = time.Second
	if poll > 0 {
		f.poll = time.Duration(min(poll, float64(maxPoll/time.Millisecond)) * float64(time.Millisecond))
	}
	if f.began.IsZero() {
		f.began = time.Now()
	}
	if f.expires = (time.Time{}); ttl != nil && *ttl < maxTTL { // a longer time counts as unlimited
		f.expires = f.began.Add(time.Duration(max(*ttl, 0) * float64(time.Millisecond)))
	}
}

func errNoTask() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the server has answered with a task that makes no sense"}
}

// minPoll and maxPoll bound the poll interval of the server.
const (
	minPoll = 50 * time.Millisecond
	maxPoll = 30 * time.Second
)

// A legacyTask has the fields of a task of protocol 2025-11-25 that the client reads.
type legacyTask struct {
	ID     string      `json:"taskId"`
	Status task.Status `json:"status"`
	Said   string      `json:"statusMessage"`
	Poll   float64     `json:"pollInterval"`
	TTL    *float64    `json:"ttl"`
}

// nothingYet is the tool result that is passed to the SDK while the task has no result.
var nothingYet = json.RawMessage(`{"resultType":"complete","content":[]}`)

// A statusReader delivers the status notifications of one connection to the calls of their tasks. The SDK drops such
// notifications, so the transport passes them to a statusReader. A server of protocol 2025-11-25 may send them, and the
// client polls a task only if none has arrived for the poll interval of the server.
type statusReader struct {
	mu    sync.Mutex
	calls map[string]*followed // by the ids of their tasks
}

func (s *statusReader) add(id string, f *followed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = make(map[string]*followed)
	}
	s.calls[id] = f
}

func (s *statusReader) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

// deliver passes the params of a status notification to the call of its task. It drops a notification that arrives
// before the handle of the task.
func (s *statusReader) deliver(params json.RawMessage) {
	var t legacyTask
	if adapter.Unmarshal(params, &t) != nil {
		return
	}
	s.mu.Lock()
	f := s.calls[t.ID]
	s.mu.Unlock()
	if f == nil {
		return
	}
	select {
	case <-f.news: // an older notification is replaced
	default:
	}
	select {
	case f.news <- t:
	default: // another goroutine has delivered one at the same time
	}
}

// read delivers message if it is a status notification.
func (s *statusReader) read(message []byte) {
	if !bytes.Contains(message, []byte(methodStatus)) {
		return
	}
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if adapter.Unmarshal(message, &m) == nil && m.Method == methodStatus {
		s.deliver(m.Params)
	}
}

// awaitStatus waits until a notification brings the status of the task, d has passed, or ctx ends. It reports whether a
// notification was accepted, so that the client need not poll.
func (f *followed) awaitStatus(ctx context.Context, d time.Duration) (told bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select { // either may win: a result is fetched under ctx
		case t := <-f.news:
			if f.acceptStatus(t) {
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// acceptStatus records the state in a notification, as if tasks/get had returned it. It records nothing and returns
// false if the status is unknown, or if the newest tasks/result was refused; see fetchFailed.
func (f *followed) acceptStatus(t legacyTask) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused {
		return false
	}
	switch t.Status {
	case task.Working, task.InputRequired, task.Completed, task.Failed, task.Cancelled:
		f.stands(t)
		return true
	}
	return false
}

// leave ends the delivery of notifications to f. It is called when the call has ended.
func (f *followed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reader != nil && f.id != "" {
		f.reader.remove(f.id)
	}
}

// stands records the state of a task of protocol 2025-11-25, and the method of the next request. The caller holds mu.
func (f *followed) stands(t legacyTask) {
	f.next = methodGet
	f.noteSchedule(t.Poll, t.TTL)
	f.message = t.Said
	switch f.status = t.Status; t.Status {
	case task.Completed, task.Failed:
		f.status, f.next = task.Working, methodResult // the result still has to be fetched
	case task.InputRequired:
		// The server may be able to send the question only on the stream of tasks/result. The handlers of
		// the client answer the question.
		f.next = methodResult
	}
}
