package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// This file is for what a server says of a task of protocol 2025-11-25 without being asked. Such
// notifications are optional, and take the place of the polls for as long as they come: there is one if
// nothing has come for the interval of the server.

// told delivers a notification to the call that it is of. One that comes before its handle is to nobody.
func (f *follower) told(fields map[string]any) {
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

// listen has notifications of a task delivered, until leave is called.
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

// next returns how the task is as soon as the server says so, by itself or because it is asked. resp is what
// has said it.
func (p *poller) next(ctx context.Context, id string, news <-chan taskView) (view taskView, resp *transport.JSONRPCResponse, err error) {
	timer := time.NewTimer(max(new(request.Polls).Answered(p.poll, p.expires), leastPoll))
	defer timer.Stop()
	for {
		select {
		case view = <-news:
			if p.believes(view.Status) {
				return view, &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION}, nil
			}
			continue
		case <-ctx.Done():
			return view, nil, ctx.Err()
		case <-timer.C:
		}
		resp, err = p.ask(ctx, methodProbe, id, nil)
		if err == nil && resp.Error == nil {
			view = taskView{}
			if err = adapter.Unmarshal(resp.Result, &view); err != nil {
				err = fmt.Errorf("mcpgo: the answer of %s: %w", methodProbe, err)
			}
		}
		return view, resp, err
	}
}

// believes reports whether a notification is taken for an answer to tasks/get. After a tasks/result that
// was refused only one that was asked for will do, see fetch.
func (p *poller) believes(status string) bool {
	switch status {
	case "working", "input_required", "completed", "failed", "cancelled":
		return p.legacy && !p.refused
	}
	return false
}
