package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A taskView is what a client reads of a handle and of the answer of tasks/get.
type taskView struct {
	ResultType    string                     `json:"resultType"`
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage"`
	LastUpdatedAt string                     `json:"lastUpdatedAt"`
	PollMs        float64                    `json:"pollIntervalMs"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Error         *mcp.JSONRPCErrorDetails   `json:"error"`
}

func (v *taskView) poll() time.Duration {
	if v.PollMs <= 0 {
		return defaultPoll
	}
	return max(leastPoll, time.Duration(min(v.PollMs, float64(mostPoll/time.Millisecond))*float64(time.Millisecond)))
}

// A poller asks about the task of one call.
type poller struct {
	f    *follower
	of   transport.JSONRPCRequest
	meta json.RawMessage
	sent int
}

// follow waits for the end of a task, or for its questions, and returns what the call is to be
// answered with.
func (p *poller) follow(ctx context.Context, c *followed, view taskView) (*transport.JSONRPCResponse, error) {
	id, news := view.TaskID, view
	for {
		if err := pause(ctx, view.poll()); err != nil {
			return nil, err
		}
		resp, err := request.Retry(ctx, request.Backoff{}, func(error) bool { return ctx.Err() == nil }, func() (*transport.JSONRPCResponse, error) {
			return p.send(ctx, methodProbe, id, nil)
		})
		if err != nil || resp.Error != nil {
			return resp, err
		}
		view = taskView{}
		if err := json.Unmarshal(resp.Result, &view); err != nil {
			return nil, fmt.Errorf("mcpgo: the answer of %s: %w", methodProbe, err)
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
		if view.LastUpdatedAt != news.LastUpdatedAt || view.StatusMessage != news.StatusMessage {
			news = view
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

// send sends one request about a task.
func (p *poller) send(ctx context.Context, method, id string, answers json.RawMessage) (*transport.JSONRPCResponse, error) {
	params := map[string]json.RawMessage{metaKey: p.meta}
	params["taskId"], _ = json.Marshal(id)
	if answers != nil {
		params["inputResponses"] = answers
	}
	p.sent++
	header := p.of.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	for name := range header {
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			delete(header, name)
		}
	}
	header.Set(mcp.HeaderMethod, method)
	if value, ok := mcp.EncodeHeaderValue(id); ok {
		header.Set(mcp.HeaderName, value)
	}
	resp, err := p.f.Interface.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(fmt.Sprintf("%v-%s-%d", p.of.ID.Value(), method, p.sent)),
		Method: method, Params: params, Header: header,
	})
	if err == nil && resp == nil {
		err = fmt.Errorf("mcpgo: no answer of %s", method)
	}
	return resp, err
}

// cancel tells the server that nobody waits for the task any more.
func (p *poller) cancel(ctx context.Context, id string) {
	q := *p
	ctx = context.WithoutCancel(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, cancelWait)
		defer cancel()
		_, _ = q.send(ctx, "tasks/cancel", id, nil)
	}()
}

// ended makes a response that of the call.
func (p *poller) ended(resp *transport.JSONRPCResponse, err error) (*transport.JSONRPCResponse, error) {
	if err != nil {
		return nil, err
	}
	resp.ID = p.of.ID
	return resp, nil
}
