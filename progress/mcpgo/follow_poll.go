package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// follow waits until a task ends or asks questions, and returns the response to the call.
func (p *poller) follow(ctx context.Context, c *followed, view taskView) (*transport.JSONRPCResponse, error) {
	id, shown := view.TaskID, view
	news, leave := p.f.listen(id)
	defer leave()
	for {
		p.noteSchedule(&view)
		next, resp, err := p.next(ctx, id, news)
		if err != nil || resp.Error != nil {
			return resp, err
		}
		view = next
		if p.legacy && view.Status != "working" && view.Status != "cancelled" {
			if resp, done, err := p.fetch(ctx, id); done {
				return resp, err
			}
			continue
		}
		switch view.Status {
		case "completed":
			resp.Result = view.Result
			return resp, nil
		case "failed":
			if view.Error == nil {
				view.Error = &mcp.JSONRPCErrorDetails{Code: mcp.INTERNAL_ERROR, Message: taskEnd("failed", view.StatusMessage)}
			}
			resp.Result, resp.Error = nil, view.Error
			return resp, nil
		case "cancelled":
			resp.Result, resp.Error = nil, &mcp.JSONRPCErrorDetails{Code: mcp.INTERNAL_ERROR, Message: taskEnd("was cancelled", view.StatusMessage)}
			return resp, nil
		case "input_required":
			if len(view.InputRequests) > 0 {
				// To mcp-go it is a result that asks, which it answers by calling again.
				resp.Result, err = json.Marshal(map[string]any{
					"resultType": mcp.ResultTypeInputRequired, "inputRequests": view.InputRequests, "requestState": p.f.mark + id,
				})
				return resp, err
			}
		}
		if view.LastUpdatedAt != shown.LastUpdatedAt || view.StatusMessage != shown.StatusMessage {
			shown = view
			p.f.report(c, view.StatusMessage)
		}
	}
}

func taskEnd(how, message string) string {
	if message == "" {
		return "the task " + how
	}
	return "the task " + how + ": " + message
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends a request about a task until it is answered, for as long as the server keeps the task.
func (p *poller) ask(ctx context.Context, method, id string, answers json.RawMessage) (*transport.JSONRPCResponse, error) {
	var polls request.Polls
	for {
		resp, err := p.send(ctx, method, id, answers)
		if ctx.Err() != nil || !lost(resp, err) {
			return resp, err
		}
		p.lost++
		wait, more := polls.Failed(max(p.poll, leastPoll), p.expires)
		switch {
		case !more && err != nil:
			return nil, fmt.Errorf("the task %q: %w", id, err)
		case !more:
			return resp, nil
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// lost reports whether a request got no answer from the server, so that it has to be sent again.
func lost(resp *transport.JSONRPCResponse, err error) bool {
	if err == nil {
		return resp.Error != nil && resp.Error.Code == mcp.INTERNAL_ERROR
	}
	if errors.Is(err, transport.ErrTransportClosed) || errors.Is(err, transport.ErrSessionTerminated) ||
		errors.Is(err, transport.ErrAuthorizationRequired) || errors.Is(err, transport.ErrOAuthAuthorizationRequired) {
		return false
	}
	switch status := statusOf(err); status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return status < 400 // none: the connection was refused or lost
	}
}

// statusOf returns the HTTP status with which a request was refused, or 0 if there was none. It reads the text of the
// error, since mcp-go has the status nowhere else.
func statusOf(err error) (status int) {
	if _, text, ok := strings.Cut(err.Error(), "request failed with status "); ok {
		_, _ = fmt.Sscanf(text, "%d", &status)
	}
	return status
}

// send sends one request about a task.
func (p *poller) send(ctx context.Context, method, id string, answers json.RawMessage) (*transport.JSONRPCResponse, error) {
	params := make(map[string]json.RawMessage)
	if !p.legacy {
		params[metaKey] = p.meta
	}
	params["taskId"], _ = json.Marshal(id)
	if answers != nil {
		params["inputResponses"] = answers
	}
	p.sent++
	header := p.request.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	for name := range header {
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			delete(header, name)
		}
	}
	if value, ok := mcp.EncodeHeaderValue(id); ok && !p.legacy {
		header.Set(mcp.HeaderMethod, method)
		header.Set(mcp.HeaderName, value)
	}
	resp, err := p.f.Interface.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(fmt.Sprintf("%v-%s-%d", p.request.ID.Value(), method, p.sent)),
		Method: method, Params: params, Header: header,
	})
	if err == nil && (resp == nil || resp.Result == nil && resp.Error == nil) { // as of a gateway that answers in JSON
		resp, err = nil, fmt.Errorf("mcpgo: no answer of %s", method)
	}
	return resp, err
}

// cancelSoon is how long a caller that gives up waits for the cancellation, so that a program that ends
// then has sent it. It is below the 250 ms after which Limit takes a transport for stuck.
const cancelSoon = 200 * time.Millisecond

// cancel tells the server that nobody waits for the task any more.
func (p *poller) cancel(ctx context.Context, id string) {
	q := *p
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer cancel()
		_, _ = q.ask(ctx, "tasks/cancel", id, nil)
	}()
	wait := time.NewTimer(cancelSoon)
	defer wait.Stop()
	select {
	case <-cancelled:
	case <-wait.C:
	}
}

// ended returns a response about the task as the response to the call.
func (p *poller) ended(resp *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if err != nil {
		return nil, err
	}
	resp.ID = p.request.ID
	return resp, nil
}

// next returns the state of the task, from a notification or, if none comes in time, from tasks/get. resp is the
// response that had it.
func (p *poller) next(ctx context.Context, id string, news <-chan taskView) (view taskView, resp *transport.JSONRPCResponse, err error) {
	timer := time.NewTimer(max(new(request.Polls).Answered(p.poll, p.expires), leastPoll))
	defer timer.Stop()
	for {
		select {
		case view = <-news:
			if p.acceptsStatus(view.Status) {
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

// fetch asks for the result of a task that has ended, or that has a question, which needs a stream to
// come on and may have no other. It is done where that is how the call is answered, and else the task is
// to be asked for again. The error of the task and one of a server whose store is away look alike, if
// they have the code -32603: it is the task's own if it comes again, and the server had an answer to
// tasks/get at once in between.
func (p *poller) fetch(ctx context.Context, id string) (resp *transport.JSONRPCResponse, done bool, err error) {
	resp, err = p.send(ctx, methodFetch, id, nil)
	if ctx.Err() != nil || !lost(resp, err) {
		return resp, true, err
	}
	if err == nil && p.refused && p.lost == 0 {
		return resp, true, nil
	}
	p.refused, p.lost = err == nil, 0
	return nil, false, nil
}

const methodFetch = "tasks/result"

// cancelWait bounds the time for sending a cancellation to a server that does not read.
const cancelWait = 5 * time.Second
