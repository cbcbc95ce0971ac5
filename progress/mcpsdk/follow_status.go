package mcpsdk

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// This file is for what a server says of a task of protocol 2025-11-25 without being asked. The SDK drops
// such notifications, so the transport delivers them. They are optional, and take the place of the polls
// for as long as they come: there is one if nothing has come for the interval of the server.

const methodStatus = "notifications/tasks/status"

// A statusReader delivers the status notifications of one connection to the calls that they are of.
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

// said delivers the params of a notification. One that comes before its handle is to nobody.
func (s *statusReader) said(params json.RawMessage) {
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
		s.said(m.Params)
	}
}

// hear waits for d, and reports whether the server has said meanwhile how the task is, so that it need not be
// asked.
func (f *followed) hear(ctx context.Context, d time.Duration) (told bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case t := <-f.news:
			if f.believe(t) {
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// believe takes a notification for an answer to tasks/get, unless it takes one that was asked for: after
// a tasks/result that was refused, see fetchFailed.
func (f *followed) believe(t legacyTask) bool {
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

// readBy says by which connection the call goes.
func (f *followed) readBy(s *statusReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reader = s
}

// leave is for the end of a call.
func (f *followed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reader != nil && f.id != "" {
		f.reader.remove(f.id)
	}
}
