package main

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A vigil records the use of a session's server: when it was used last, and everything that keeps it awake. It
// is guarded by the session's lock.
type vigil struct {
	used        time.Time       // when a message for the server, or the answer to one, came last
	uses        uint64          // how many such messages there were
	sending     int             // messages that are on their way to the run
	comparing   bool            // the lists of a run that has just been woken are being compared
	questions   map[string]bool // of tools, which the host has not answered: states and ids of calls
	serverTasks map[string]bool // tasks of the server whose result has not been fetched
}

// use notes a use of the server. The caller holds s.mu.
func (s *session) use() {
	s.used = time.Now()
	s.uses++
}

// needsServer reports whether a request cannot be answered for a server that sleeps. What can be is no use
// either: a host that pings the server would keep it awake.
func needsServer(method string) bool { return method != "ping" && listOf(method) == "" }

// open reports whether anything is under way that a server which sleeps would lose. The caller holds s.mu.
func (s *session) open() bool {
	switch {
	case !s.ready, !s.heard, s.over, s.doubt != nil, len(s.waiting.messages) > 0, s.sending > 0, s.comparing:
		return true
	case s.initialize != nil && s.initialized == nil: // the host has not finished
		return true
	}
	return len(s.requests)+len(s.asked)+len(s.own)+len(s.subscribed)+len(s.questions)+len(s.serverTasks) > 0
}

// note notes a subscription or a task that the answer to a request of the host begins or ends. The caller holds
// s.mu.
func (s *session) note(in *inFlight, m *message) {
	if needsServer(in.method) {
		s.use()
	}
	var params struct {
		TaskID string `json:"taskId"`
	}
	switch in.method {
	case "resources/subscribe":
		if m.Error != nil {
			delete(s.subscribed, string(in.params))
		}
	case "tools/call":
		if !bytes.Contains(m.Result, []byte(`"taskId"`)) {
			return
		}
		var result struct {
			TaskID string `json:"taskId"`
			Task   struct {
				TaskID string `json:"taskId"`
			}
		}
		_ = adapter.Unmarshal(m.Result, &result)
		for _, id := range []string{result.TaskID, result.Task.TaskID} {
			if id != "" {
				s.serverTasks[id] = true
			}
		}
	case "tasks/result", "tasks/cancel":
		_ = adapter.Unmarshal(in.params, &params)
		delete(s.serverTasks, params.TaskID)
	case "tasks/get":
		_ = adapter.Unmarshal(in.params, &params)
		var task struct {
			Status        string
			Result, Error json.RawMessage // of 2026-07-28; before, tasks/result has them
		}
		_ = adapter.Unmarshal(m.Result, &task)
		if m.Error != nil || task.Result != nil || task.Error != nil || task.Status == "cancelled" {
			delete(s.serverTasks, params.TaskID)
		}
	}
}

// asks notes that a question of a tool is open, or no longer is. The server may remember what it was about.
func (s *session) asks(key string, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use()
	if open {
		s.questions[key] = true
	} else {
		delete(s.questions, key)
	}
}
