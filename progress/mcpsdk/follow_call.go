package mcpsdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// The methods of a followed call's requests on the wire.
const (
	methodCall   = "tools/call"
	methodGet    = "tasks/get"
	methodUpdate = "tasks/update"
	methodCancel = "tasks/cancel"
)

type followKey struct{}

// A followed call is one that may become a task. To the SDK, each of its requests is a tools/call
// that is answered with a tool's result; what they are on the wire is the business of the
// transport, which has the followed call from the context. The requests come one after the other.
type followed struct {
	mu       sync.Mutex
	what     string
	id       string
	status   task.Status
	message  string // that the server has given with the status
	poll     time.Duration
	began    time.Time       // when its handle came
	expires  time.Time       // until then the server keeps it; zero is not known
	answered map[string]bool // the questions, by key
	answers  json.RawMessage // that the server may not have yet
	failed   error
	cut      bool // the newest answer was cut off
	denied   bool // the newest request was answered with 401 or 403

	next string // what is to be asked next: methodGet, or methodResult

	legacy  bool            // as in protocol 2025-11-25
	refused bool            // the newest tasks/result was answered with -32603
	reader  *statusReader   // of the connection; nil where it does not read notifications
	news    chan legacyTask // the newest notification

	listening bool            // to the answer of another request
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
	f.what, f.cut, f.denied = what, false, false
}

func (f *followed) cutOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// deny keeps whether a request was refused for want of an authorization. The SDK asks its OAuthHandler
// for one then, and if it gets none, its error is like that of a connection that was refused.
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

// lost reports whether err says that nobody has answered, or not yet.
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

// cancelled is the error of a task that another client or the server has cancelled.
func (f *followed) cancelled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.message == "" {
		return task.ErrCancelled
	}
	return fmt.Errorf("%w: %s", task.ErrCancelled, f.message)
}

// answeredWith reports whether err is the task's own.
func (f *followed) answeredWith(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wire *jsonrpc.Error
	return f.failed != nil && errors.As(err, &wire)
}

// maxTTL is a century, in milliseconds.
const maxTTL = 100 * 365 * 24 * 3600e3

// told keeps what the server wants of whoever asks for the task. The caller has the lock.
func (f *followed) told(poll float64, ttl *float64) {
	f.poll = time.Second
	if poll > 0 {
		f.poll = time.Duration(min(poll, float64(maxPoll/time.Millisecond)) * float64(time.Millisecond))
	}
	if f.began.IsZero() {
		f.began = time.Now()
	}
	if f.expires = (time.Time{}); ttl != nil && *ttl < maxTTL { // else it is as good as unlimited
		f.expires = f.began.Add(time.Duration(max(*ttl, 0) * float64(time.Millisecond)))
	}
}

func errNoTask() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the server has answered with a task that makes no sense"}
}
