package task

import (
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
)

// A Status is the status of a task, as the protocols 2025-11-25 and 2026-07-28 both spell it.
type Status string

// A task begins as Working, and may change between Working and InputRequired. It ends as Completed, Failed or
// Cancelled, and then never changes its status.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Final reports whether s is Completed, Failed or Cancelled: the status of the task then never changes again.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// A Form is a way to answer a call whose result is not ready yet.
type Form string

const (
	// Plain means that the call is answered with its result only, for which the client waits.
	Plain Form = ""
	// Legacy is a task of protocol 2025-11-25, which the client requests with "task" in the
	// params of the call.
	Legacy Form = "2025-11-25"
	// Extension is a task of the extension io.modelcontextprotocol/tasks, which the client
	// declares with each request of protocol 2026-07-28.
	Extension Form = "2026-07-28"
	// Continued is an ordinary result with the name of a tool that waits for the result of the call, for
	// clients that do not support tasks.
	Continued Form = "continuation"
)

// A Record holds the state of one task, as a [Store] keeps it. It can be marshalled with encoding/json.
// Slices and maps in it must not be changed.
type Record struct {
	ID    string `json:"id"`    // 128 random bits or more, after a prefix of the Store if it uses one
	Owner string `json:"owner"` // identifies the principal or session that the task belongs to; may be ""
	Form  Form   `json:"form"`
	Tool  string `json:"tool"`
	// Version is the protocol version of the call.
	Version string `json:"version,omitempty"`

	Status  Status `json:"status"`
	Message string `json:"message,omitempty"` // the tool's newest message, or why the task has failed or was cancelled

	// Progress and Total are taken from the newest [progress.Update]; they are 0 if there is none.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`

	Started time.Time `json:"started"` // when the call began
	Created time.Time `json:"created"` // when the task was created
	// Updated is when Status, Message, Progress or Total last changed, the client last answered a question, or the
	// outcome of a cancelled tool was added.
	Updated time.Time `json:"updated"`

	// Soft is how long the call could run before it became a task or a continuation. 0 means that it became one at
	// once. In JSON it is in nanoseconds.
	Soft     time.Duration `json:"soft,omitempty"`
	WaitTool string        `json:"waitTool,omitempty"` // the name of the wait tool, for a continuation

	Poll      time.Duration `json:"poll"`      // the interval at which a client should poll
	Retention time.Duration `json:"retention"` // how long the task is kept after its end

	// TTL is the time that was granted to a client that has requested how long the task is kept. It begins
	// again at the end of the task, and Retention is equal to it. A task that still runs is kept in any case.
	// 0 means that the client has not requested a TTL.
	TTL time.Duration `json:"ttl,omitempty"`

	// Round is how many times the tool has returned questions since the call became a task. Questions holds
	// the questions without an answer, and Answers holds the answers that the process of the tool has not
	// read yet. Each key is used once per task.
	Round     int                        `json:"round,omitempty"`
	Questions map[string]json.RawMessage `json:"questions,omitempty"`
	Answers   map[string]json.RawMessage `json:"answers,omitempty"`

	// Answer is the outcome of a task that has completed or failed. A cancelled task has no Answer until its
	// tool has returned; another Update then adds the outcome of the tool.
	Answer *Answer `json:"answer,omitempty"`
	// IsError reports whether the isError of the result is true. Failure is then the text of the result; after 16 KiB
	// it is cut, and "..." follows. The Status is Completed, but clients of protocol 2025-11-25 are told that the task
	// has failed, with Failure as the status message, because many of them show nothing else of a failed task.
	IsError bool      `json:"isError,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // when the task becomes unknown; zero until Status is final

	// Abort requests that the process of the tool abort the call. The outcome is then the result that the
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
	// Questions are the inputRequests of a result, by key. Such a result is not the last: the tool has to be
	// called again with the answers. They are never stored in a Record's Answer.
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

// ContinuationKey is a key in the _meta of the result of a call that is still running. Its value is an object
// with the fields id, tool and elapsedMs, and those of message, progress and total that are known: a program
// calls the named tool with the id to wait for the result.
const ContinuationKey = "io.github.tooldeadline/continuation"

// ExtensionID is the name of the extension for tasks of protocol 2026-07-28, in the capabilities of
// client and server. Its value there is an empty object: clients treat any other value as a refusal.
const ExtensionID = "io.modelcontextprotocol/tasks"

// end makes the record final with the given status, which it has from now on until Expires.
func (r *Record) end(status Status, now time.Time) {
	r.Status, r.Updated, r.Expires = status, now, now.Add(r.Retention)
	r.Questions, r.Answers = nil, nil
}

// maxLast is the largest number of characters of a tool's last message and progress in the error of a lost task.
const maxLast = 200

// Lost returns r as the record of a task whose process is gone: the task failed at now. The error, which is also the
// Message, has the tool's last message and progress; after 200 characters they are cut, and "..." follows. A [Store]
// calls Lost for a record that is not final.
func (r Record) Lost(now time.Time) Record {
	message := "the process that ran the task is gone"
	if last := (progress.Update{Progress: r.Progress, Total: r.Total, Message: r.Message}).String(); last != "" {
		// The record holds the text twice, and a full store has no more room than the running task took.
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
