package mcpgo

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
)

// This file is for what a server says of a task of protocol 2025-11-25 without being asked. Such
// notifications are optional, and replace the polls while they come: the client polls only if none has
// come for the poll interval of the server.

// deliverStatus delivers a status notification to the call of its task. It drops a notification that comes before the
// handle of the task.
func (f *follower) deliverStatus(fields map[string]any) {
	raw, err := json.Marshal(fields)
	var view taskView
	if err != nil || json.Unmarshal(raw, &view) != nil {
		return
	}
	f.mu.Lock()
	news := f.tasks[view.TaskID]
	f.mu.Unlock()
	if news == nil {
		return
	}
	select {
	case <-news: // the newest counts
	default:
	}
	select {
	case news <- view:
	default: // another one has come at the same time
	}
}

// listen returns a channel that gets the newest notification about a task, until leave is called.
func (f *follower) listen(id string) (news <-chan taskView, leave func()) {
	c := make(chan taskView, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[id] = c
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.tasks, id)
	}
}

// acceptsStatus reports whether a notification with this status can take the place of an answer to tasks/get. After a
// refused tasks/result it cannot; see fetch.
func (p *poller) acceptsStatus(status string) bool {
	switch status {
	case "working", "input_required", "completed", "failed", "cancelled":
		return p.legacy && !p.refused
	}
	return false
}

const (
	defaultPoll = time.Second
	leastPoll   = 10 * time.Millisecond
	mostPoll    = time.Minute
)

// maxTTL is a century, in milliseconds.
const maxTTL = 100 * 365 * 24 * 3600e3

// A taskView has the fields of a handle, and of the answer to tasks/get, that the client reads.
type taskView struct {
	ResultType    string                     `json:"resultType"`
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage"`
	LastUpdatedAt string                     `json:"lastUpdatedAt"`
	PollMs        float64                    `json:"pollIntervalMs"`
	TTLMs         *float64                   `json:"ttlMs"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Error         *mcp.JSONRPCErrorDetails   `json:"error"`

	// The names of protocol 2025-11-25.
	PollInterval float64  `json:"pollInterval"`
	TTL          *float64 `json:"ttl"`
}

func (v *taskView) poll() time.Duration {
	ms := max(v.PollMs, v.PollInterval)
	if ms <= 0 {
		return defaultPoll
	}
	return max(leastPoll, time.Duration(min(ms, float64(mostPoll/time.Millisecond))*float64(time.Millisecond)))
}

type follower struct {
	passing
	// mark is the prefix of the request states that this package makes, for tasks that wait for answers.
	mark string

	legacy legacyServer

	mu      sync.Mutex
	calls   map[string]*followed // by their progress tokens
	tasks   map[string]chan taskView
	handler func(mcp.JSONRPCNotification)
}

// A followed call is one that may become a task.
type followed struct {
	token any
	last  float64 // the progress that the client has seen
	seen  bool
}

// report passes the status message of a task on to the client as progress.
func (f *follower) report(c *followed, message string) {
	f.mu.Lock()
	handler := f.handler
	if c.seen {
		c.last = progress.Step(c.last)
	}
	c.seen = true
	params := map[string]any{"progressToken": c.token, "progress": c.last}
	f.mu.Unlock()
	if handler == nil || c.token == nil {
		return
	}
	if message != "" {
		params["message"] = message
	}
	handler(mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: methodProgress, Params: mcp.NotificationParams{AdditionalFields: params},
	}})
}

// A poller asks about the task of one call.
type poller struct {
	f       *follower
	request transport.JSONRPCRequest
	meta    json.RawMessage
	sent    int

	began   time.Time // when the call was answered with the task, or its questions with the answers
	poll    time.Duration
	expires time.Time // when the server deletes the task; zero if that is not known

	legacy  bool // as in protocol 2025-11-25
	refused bool // the newest tasks/result was answered with -32603
	lost    int  // number of requests that have failed since then
}

// noteSchedule records how often the server wants to be asked about the task, and how long it keeps the task.
func (p *poller) noteSchedule(v *taskView) {
	p.poll = v.poll()
	ttl := v.TTLMs
	if p.legacy {
		ttl = v.TTL
	}
	if p.expires = (time.Time{}); ttl != nil && *ttl < maxTTL { // a longer time counts as unlimited
		p.expires = p.began.Add(time.Duration(max(*ttl, 0) * float64(time.Millisecond)))
	}
}

// A legacyServer holds what is known about the tasks of a server of protocol 2025-11-25.
type legacyServer struct {
	mu      sync.Mutex
	offers  bool            // the server offers calls of tools as tasks
	listed  bool            // all of its tools are known
	dropped bool            // some of them were forgotten, so that the end of a list makes not all known
	tools   map[string]bool // whether a tool may be called as a task
}

// maxTools is how many tools are remembered. What is known of more is dropped when the next page comes.
const maxTools = 10_000

// learn records what an answer to initialize or tools/list says about tasks.
func (s *legacyServer) learn(method string, said heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case method == string(mcp.MethodInitialize):
		s.offers = said.Version == sinceTasks && said.Capabilities.Tasks.Requests.Tools.Call != nil
	case method == methodListing && s.offers:
		if len(s.tools) > maxTools {
			s.listed, s.dropped, s.tools = false, true, nil
		}
		if s.tools == nil {
			s.tools = make(map[string]bool)
		}
		for _, t := range said.Tools {
			s.tools[t.Name] = t.Execution.TaskSupport == mcp.TaskSupportOptional || t.Execution.TaskSupport == mcp.TaskSupportRequired
		}
		s.listed = s.listed || said.Next == "" && !s.dropped
	}
}

// forget drops what is known of the tools of the server, because they have changed.
func (s *legacyServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.dropped, s.tools = false, false, nil
}

// takes reports whether a tool may be called as a task. known is false if the tool has not been listed, but may be on a
// page of the list that has not been read.
func (s *legacyServer) takes(tool string) (takes, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takes, known = s.tools[tool]
	return takes, known || s.listed || !s.offers
}
