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

// follow polls a task until it ends or asks questions, and returns the response to the call. view is the task as the
// handle describes it. The error is not nil if ctx ends or the server can no longer be reached.
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
				// mcp-go's client answers the questions of such a result, and calls the tool again with the answers.
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
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends a request about a task. While it gets no answer, see lost, it sends the request again, for as long as the
// server keeps the task. The last failure is the result.
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

// lost reports whether a request should be sent again: the HTTP status was 429, 500, 502, 503 or 504, the error has the
// code -32603, or err is another error without an HTTP status of 400 or more, such as a refused or lost connection. It
// returns false if the transport was closed, the session was terminated, or authorization is required.
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
		return status < 400 // 0: the connection was refused or lost
	}
}

// statusOf returns the HTTP status with which a request failed, or 0 if the failure has no status. It parses the text
// of the error, the only place where mcp-go has the status.
func statusOf(err error) (status int) {
	if _, text, ok := strings.Cut(err.Error(), "request failed with status "); ok {
		_, _ = fmt.Sscanf(text, "%d", &status)
	}
	return status
}

// send sends one request about a task, with the HTTP headers of the call except those that describe its parameters.
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
	if err == nil && (resp == nil || resp.Result == nil && resp.Error == nil) { // a gateway may answer with other JSON
		resp, err = nil, fmt.Errorf("mcpgo: no answer of %s", method)
	}
	return resp, err
}

// cancelSoon bounds how long cancel waits for the answer of the server, so that a program that exits after
// it gave up a call has sent the cancellation. It is below the 250 ms after which Limit gives up a transport.
const cancelSoon = 200 * time.Millisecond

// cancel sends tasks/cancel for a task whose result is no longer wanted. It waits up to cancelSoon for the answer; the
// request goes on for up to cancelWait.
func (p *poller) cancel(ctx context.Context, id string) {
	q := *p
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer cancel()
		_, _ = q.ask(ctx, "tasks/cancel", id, nil)
	}()
	select {
	case <-cancelled:
	case <-time.After(cancelSoon):
	}
}

// ended turns a response about the task into the response to the call, by giving it the id of the call. It returns nil
// and err if err is not nil.
func (p *poller) ended(resp *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if err != nil {
		return nil, err
	}
	resp.ID = p.request.ID
	return resp, nil
}

// next returns the state of the task from a status notification or, if none comes within the poll interval, from
// tasks/get. resp is the response of tasks/get, which may have an error, or a response without a result for a
// notification.
func (p *poller) next(ctx context.Context, id string, news <-chan taskView) (view taskView, resp *transport.JSONRPCResponse, err error) {
	timer := time.NewTimer(max(new(request.Polls).Answered(p.poll, p.expires), leastPoll))
	defer timer.Stop()
	for {
		select { // either may win: a result is fetched under ctx
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

// fetch sends tasks/result for a task of protocol 2025-11-25 that has ended or waits for input; the server
// may send the question on the stream of this request. done reports whether resp and err answer the call;
// otherwise the task must be polled again. An error with the code -32603 may come from the task itself, or
// from a server that cannot reach its store. fetch takes it as the task's own if tasks/result returns it
// twice, and no tasks/get failed in between.
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

// cancelWait bounds how long a cancellation may take to be sent, for example to a server that does not read.
const cancelWait = 5 * time.Second
