package mcpsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

type followKey struct{}

// A followed call is one that may become a task. To the SDK, each of its requests is a tools/call
// that is answered with a tool's result; what they are on the wire is the business of the
// transport, which has the followed call from the context. The requests come one after the other.
type followed struct {
	mu       sync.Mutex
	method   string
	id       string
	status   task.Status
	message  string // the message that the server has sent with the status
	poll     time.Duration
	began    time.Time       // when its handle came
	expires  time.Time       // when the server deletes the task; zero if that is not known
	answered map[string]bool // the questions, by key
	answers  json.RawMessage // answers that the server may not have yet
	failed   error
	cut      bool // the newest answer was cut off
	denied   bool // the newest request was answered with 401 or 403

	next string // what is to be asked next: methodGet, or methodResult

	legacy  bool            // as in protocol 2025-11-25
	refused bool            // the newest tasks/result was answered with -32603
	reader  *statusReader   // of the connection; nil where it does not read notifications
	news    chan legacyTask // the newest notification

	listening bool            // reads the answer to a request that is not a call
	heard     json.RawMessage // that
}

func (f *followed) nextMethod() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

func (f *followed) ask(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.method, f.cut, f.denied = what, false, false
}

func (f *followed) cutOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// deny records whether a request was refused because it was not authorized. The SDK asks its OAuthHandler for one
// then, and if it gets none, its error is like that of a connection that was refused.
func (f *followed) deny(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = status == http.StatusUnauthorized || status == http.StatusForbidden
}

func (f *followed) keptUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expires
}

// lost reports whether err means that a request got no answer from the server, so that the request has to be sent
// again.
func (f *followed) lost(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied {
		return false // whoever has declined to authorize it is not asked again
	}
	var wire *jsonrpc.Error
	return f.cut || transient(err) || errors.As(err, &wire) && wire.Code == jsonrpc.CodeInternalError
}

func (f *followed) state() (id string, poll time.Duration, _ task.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id, f.poll, f.status
}

// cancelled returns the error of a task that another client or the server has cancelled.
func (f *followed) cancelled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.message == "" {
		return task.ErrCancelled
	}
	return fmt.Errorf("%w: %s", task.ErrCancelled, f.message)
}

// answeredWith reports whether err is the error with which the task has failed.
func (f *followed) answeredWith(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wire *jsonrpc.Error
	return f.failed != nil && errors.As(err, &wire)
}

// maxTTL is a century, in milliseconds.
const maxTTL = 100 * 365 * 24 * 3600e3

// noteSchedule records how often the server wants to be asked about the task, and how long it keeps the task. The
// caller has the lock.
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

// How often a task is asked for, whatever the server says.
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

// nothingYet is the result that the SDK gets while the task has no result.
var nothingYet = json.RawMessage(`{"resultType":"complete","content":[]}`)

// A statusReader delivers the status notifications of one connection to the calls of their tasks. A server of
// protocol 2025-11-25 may send them without being asked. The SDK drops such notifications, so the transport delivers
// them. They are optional, and replace the polls while they come: the client polls only if no notification has come
// for the poll interval of the server.
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

// deliver delivers the params of a status notification to the call of its task. It drops a notification that comes
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
	case <-f.news: // the newest counts
	default:
	}
	select {
	case f.news <- t:
	default: // another one has come at the same time
	}
}

// read looks for a notification in a message.
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

// awaitStatus waits for d or until a notification has the status of the task. It reports whether one came, so that
// the server need not be asked.
func (f *followed) awaitStatus(ctx context.Context, d time.Duration) (told bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
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

// acceptStatus takes a notification in place of an answer to tasks/get. It reports false if that cannot be: the
// status is unknown, or a tasks/result was refused, see fetchFailed.
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

// readBy sets the reader of the connection over which the call was sent.
func (f *followed) readBy(s *statusReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reader = s
}

// leave ends the delivery of notifications to the call, which has ended.
func (f *followed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reader != nil && f.id != "" {
		f.reader.remove(f.id)
	}
}

// stands records the state of the task. The caller has the lock.
func (f *followed) stands(t legacyTask) {
	f.next = methodGet
	f.noteSchedule(t.Poll, t.TTL)
	f.message = t.Said
	switch f.status = t.Status; t.Status {
	case task.Completed, task.Failed:
		f.status, f.next = task.Working, methodResult // which is to be fetched
	case task.InputRequired:
		// The question needs a stream to come on, and may have no other. It is answered by the client's
		// own handlers.
		f.next = methodResult
	}
}
