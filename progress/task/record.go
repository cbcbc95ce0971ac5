package task

import (
	"encoding/json"
	"time"
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

// A Form is a form of the answer that a client can be given before the result is ready.
type Form string

const (
	// Plain is nothing: the client waits for the result.
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
	Owner string `json:"owner"` // the principal or session that it belongs to, as any text, also ""
	Form  Form   `json:"form"`
	Tool  string `json:"tool"`
	// Version is the protocol version of the call.
	Version string `json:"version,omitempty"`

	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // the newest of the heartbeat, or why the task has failed

	// Progress and Total are those of the newest [progress.Update]; 0 if there is none.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`

	Started time.Time `json:"started"` // the call
	Created time.Time `json:"created"` // the task
	Updated time.Time `json:"updated"` // status or message

	Soft     time.Duration `json:"soft,omitempty"`     // the limit that the call has reached, in nanoseconds
	WaitTool string        `json:"waitTool,omitempty"` // of a continuation

	Poll      time.Duration `json:"poll"`      // how often a client should ask
	Retention time.Duration `json:"retention"` // from the end to Expires

	// TTL is what the client has asked for and was granted: the task is kept for that long from Created,
	// and until its end in any case. 0 means that the client has not asked.
	TTL time.Duration `json:"ttl,omitempty"`

	// Round counts the questions that the tool has returned, Questions has those that wait for an
	// answer, and Answers those answers that the process of the tool has not taken yet. The
	// keys are unique in the life of the task.
	Round     int                        `json:"round,omitempty"`
	Questions map[string]json.RawMessage `json:"questions,omitempty"`
	Answers   map[string]json.RawMessage `json:"answers,omitempty"`

	Answer *Answer `json:"answer,omitempty"` // of a task that has completed or failed
	// IsError is the isError of the result, and Failure is then its text, cut to 16 KiB: in
	// protocol 2025-11-25 such a task has failed, and many clients show nothing but its status
	// message.
	IsError bool      `json:"isError,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // from then on it is unknown; zero until Status is final

	// Abort asks the process of the tool to abort the call. The outcome is then the result that the
	// aborted tool returns.
	Abort bool `json:"abort,omitempty"`

	// Revision is set by the store, and changes with each Update. It is not part of the JSON.
	Revision uint64 `json:"-"`
}

// An Answer is what a call was answered with, or would have been: Error if it is set, Questions
// if there are any, else Result.
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

// ContinuationKey is where the _meta of a result that says that a call is still running has, for
// programs, {"id", "tool", "elapsedMs", "message", "progress", "total"}: what to wait with, and
// how far the call has got.
const ContinuationKey = "io.github.tooldeadline/continuation"

// ExtensionID is the extension of protocol 2026-07-28, in the capabilities of client and server. Its
// value is an empty object: clients take any other for a refusal.
const ExtensionID = "io.modelcontextprotocol/tasks"

// end makes the record final.
func (r *Record) end(status Status, now time.Time) {
	r.Status, r.Updated, r.Expires = status, now, now.Add(r.Retention)
	r.Questions, r.Answers = nil, nil
}

// Lost returns the record of a task whose process is gone: it has failed, with an error that says
// so. A [Store] calls it.
func (r Record) Lost(now time.Time) Record {
	r.end(Failed, now)
	r.Answer = &Answer{Error: &Error{Code: -32603, Message: "the process that ran the task is gone"}}
	r.Message = r.Answer.Error.Message
	return r
}
