package task

import (
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
)

// A Status is the status of a task, in the words of both protocols.
type Status string

// A task begins as working, goes from working to input_required and back, and ends as one of
// the other three, once.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Final reports whether the status never changes again.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// A Form is a way to answer a call whose result is not ready yet.
type Form string

const (
	// Plain is no such answer: the client waits for the result.
	Plain Form = ""
	// Legacy is a task of protocol 2025-11-25, which the client asks for with "task" in the
	// params of the call.
	Legacy Form = "2025-11-25"
	// Extension is a task of the extension io.modelcontextprotocol/tasks, which the client
	// declares with each request of protocol 2026-07-28.
	Extension Form = "2026-07-28"
	// Continued is an ordinary result that says how to wait for the result of the call, for clients
	// that do not support tasks.
	Continued Form = "continuation"
)

// A Record is one task as a [Store] keeps it: plain data, which encoding/json writes and reads.
// Slices and maps in it must not be changed.
type Record struct {
	ID    string `json:"id"`    // 128 random bits or more
	Owner string `json:"owner"` // the principal or session that the task belongs to; may be ""
	Form  Form   `json:"form"`
	Tool  string `json:"tool"`
	// Version is the protocol version of the call.
	Version string `json:"version,omitempty"`

	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // the newest message of the heartbeat, or why the task has failed

	// Progress and Total are those of the newest [progress.Update]; 0 if there is none.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`

	Started time.Time `json:"started"` // when the call began
	Created time.Time `json:"created"` // when the task was created
	Updated time.Time `json:"updated"` // when Status or Message last changed

	Soft     time.Duration `json:"soft,omitempty"`     // the soft limit that the call has reached; nanoseconds in JSON
	WaitTool string        `json:"waitTool,omitempty"` // the name of the wait tool, for a continuation

	Poll      time.Duration `json:"poll"`      // how often a client should ask
	Retention time.Duration `json:"retention"` // from the end to Expires

	// TTL is how long from Created the task is kept, as the client has asked and was granted. A task is
	// never removed before its end. 0 means that the client has not asked.
	TTL time.Duration `json:"ttl,omitempty"`

	// Round counts the questions that the tool has returned. Questions has the questions that wait
	// for an answer, and Answers has the answers that the process of the tool has not taken yet.
	// Their keys are unique in the life of the task.
	Round     int                        `json:"round,omitempty"`
	Questions map[string]json.RawMessage `json:"questions,omitempty"`
	Answers   map[string]json.RawMessage `json:"answers,omitempty"`

	// Answer is the outcome of a task that has completed or failed. A task that was cancelled gets that
	// of its tool later, when the tool has returned, in another Update.
	Answer *Answer `json:"answer,omitempty"`
	// IsError reports whether the isError of the result is true. Failure is then the text of the
	// result, cut to 16 KiB: in protocol 2025-11-25 such a task has failed, and many clients show
	// only the status message of a failed task.
	IsError bool      `json:"isError,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // when the task becomes unknown; zero until Status is final

	// Abort asks the process of the tool to abort the call. The outcome is then the result that the
	// aborted tool returns.
	Abort bool `json:"abort,omitempty"`

	// Revision is set by the store, and changes with each Update. It is not part of the JSON.
	Revision uint64 `json:"-"`
}

// An Answer is the answer to a call that has become a task: Error if it is set, Questions if there
// are any, and otherwise Result.
type Answer struct {
	Result json.RawMessage `json:"result,omitempty"` // a CallToolResult
	Error  *Error          `json:"error,omitempty"`  // a JSON-RPC error
	// Questions are the inputRequests of a result that is not the last one, by key: the tool is to
	// be called again with the answers. They are never stored in an Answer.
	Questions map[string]json.RawMessage `json:"-"`
}

// An Error is a JSON-RPC error, with which a call or a request is answered.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ContinuationKey is a key in the _meta of the result of a call that is still running. Its value
// tells a program which tool to call with which id to wait for the rest, and how far the call has
// got: an object with the fields id, tool, elapsedMs, message, progress and total.
const ContinuationKey = "io.github.tooldeadline/continuation"

// ExtensionID is the name of the extension for tasks of protocol 2026-07-28, in the capabilities of
// client and server. The value there is an empty object: clients take any other value for a refusal.
const ExtensionID = "io.modelcontextprotocol/tasks"

// end makes the record final.
func (r *Record) end(status Status, now time.Time) {
	r.Status, r.Updated, r.Expires = status, now, now.Add(r.Retention)
	r.Questions, r.Answers = nil, nil
}

// maxLast is how many characters of a tool's last message the error of a lost task has.
const maxLast = 200

// Lost returns the record that r becomes if the process of the task is gone: the task has failed at
// now, with an error that says so, and how far the tool had come, in at most 200 characters. A [Store] calls it.
func (r Record) Lost(now time.Time) Record {
	message := "the process that ran the task is gone"
	if last := (progress.Update{Progress: r.Progress, Total: r.Total, Message: r.Message}).String(); last != "" {
		// It is in the record twice, and a full store has no more room than the running task took.
		if runes := []rune(last); len(runes) > maxLast {
			last = string(runes[:maxLast]) + "..."
		}
		message += "; last: " + last
	}
	r.end(Failed, now)
	r.Answer = &Answer{Error: &Error{Code: -32603, Message: message}}
	r.Message = r.Answer.Error.Message
	return r
}

// RelatedKey is the key in the _meta of a message that belongs to a [Legacy] task, such as a question
// to its client. Its value is {"taskId": id}.
const RelatedKey = "io.modelcontextprotocol/related-task"
