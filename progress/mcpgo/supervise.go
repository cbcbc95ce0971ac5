package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// supervise runs a call under its limits, and returns the answer for the client.
func (s *settings) supervise(ctx context.Context, id string, run *adapter.Task, request mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	n := newNotifications(ctx, run, request.Header)
	if outer := toolcall.FromContext(ctx); id == "" && outer != nil && outer.Session == n.session {
		id = outer.RequestID // this is a Handler under Install, which has taken the id from the request
	}
	calls, waits := s.Settings(request.Params.Name)
	call := toolcall.Call{
		Tool: request.Params.Name, Session: n.session, Token: token(request.Params.Meta), Send: n.send,
		Arguments: request.Params.Arguments, Answered: n.answered(), Outlives: run != nil || waits,
		RequestID: id, SessionID: sessionIDOf(n.session),
	}
	if request.Params.Meta != nil {
		call.Meta = request.Params.Meta.AdditionalFields
	}
	var near *toolcall.Outcome
	call.NearLimit = func(o toolcall.Outcome) { near = &o }
	res, err := toolcall.Do(ctx, calls, call, func(ctx context.Context) (*mcp.CallToolResult, error) {
		res, err := s.callWithAnswers(ctx, request, next)
		if err == nil {
			res, err = encodable(res)
		}
		if err == nil && res != nil && res.IsError {
			err = toolcall.ErrResult
		}
		return res, err
	})
	n.end()
	if err == toolcall.ErrResult {
		err = nil
	}
	res, err = answer(res, err)
	return nearLimit(res, near), err
}

// encodable returns a result whose structured content and _meta can be marshalled. If one of them cannot, it is
// removed, and the error says so. encodable runs under the limits of the tool. mcp-go itself marshals results on its
// few workers, where a method that blocks occupies a worker for ever, and a panic ends the process.
func encodable(r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if r == nil {
		return r, nil
	}
	if r.Meta != nil {
		if _, err := json.Marshal(r.Meta); err != nil {
			out := *r
			out.Meta = nil
			return &out, fmt.Errorf("the tool has returned a _meta that is not JSON: %w", err)
		}
	}
	if r.StructuredContent == nil || len(r.RawStructuredContent) > 0 {
		return r, nil
	}
	if _, done := r.StructuredContent.(json.RawMessage); done {
		return r, nil
	}
	data, err := json.Marshal(r.StructuredContent)
	out := *r // a result may be shared by calls
	if err != nil {
		out.StructuredContent = nil
		return &out, fmt.Errorf("the tool has returned a result that is not JSON: %w", err)
	}
	out.StructuredContent = json.RawMessage(data)
	return &out, nil
}

// maxRounds is how many times a tool may return questions in one call. mcp-go has the same bound.
const maxRounds = 10

var errRounds = fmt.Errorf("mcpgo: the tool asks for input more than %d times", maxRounds)

// callWithAnswers calls a tool. If the tool returns questions to a person, and the protocol is before 2026-07-28,
// callWithAnswers asks the client and calls the tool again with the answers. Otherwise mcp-go would do so after the
// execution, without any limit. From 2026-07-28 on the client itself asks the person, between two calls.
func (s *settings) callWithAnswers(ctx context.Context, request mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	for range maxRounds {
		res, err := next(ctx, request)
		if err != nil || ctx.Err() != nil || !asksPerson(res) || mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) {
			return res, err
		}
		of := server.ServerFromContext(ctx)
		if of == nil {
			return res, nil
		}
		answers, err := s.answers(ctx, of, res.InputRequests)
		if err != nil {
			return nil, err
		}
		request.Params.MultiRoundTripParams = mcp.MultiRoundTripParams{InputResponses: answers, RequestState: res.RequestState}
	}
	return nil, errRounds
}

// asksPerson reports whether a result asks for input, and a person answers all of it. mcp-go handles results that also
// ask for sampling, because a program answers those.
func asksPerson(res *mcp.CallToolResult) bool {
	if res == nil || !res.NeedsInput() || len(res.InputRequests) == 0 {
		return false
	}
	for _, r := range res.InputRequests {
		if r.Elicitation == nil {
			return false
		}
	}
	return true
}

// answers asks all questions at the same time, and returns the answers by the tool's keys. If a question fails, answers
// cancels the others and returns the error.
func (s *settings) answers(ctx context.Context, of *server.MCPServer, requests mcp.InputRequests) (mcp.InputResponses, error) {
	var what []string
	for _, r := range requests {
		what = append(what, r.Elicitation.Message)
	}
	slices.Sort(what)
	return adapter.Await(ctx, server.ClientSessionFromContext(ctx), string(mcp.MethodElicitationCreate), strings.Join(what, "; "), "", s.Await, func(ctx context.Context) (mcp.InputResponses, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(errors.New("another question has failed"))
		type answer struct {
			id  string
			res *mcp.ElicitationResult
			err error
		}
		all := make(chan answer, len(requests))
		for id, r := range requests {
			go func() {
				res, err := elicit(ctx, of, mcp.ElicitationRequest{
					Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: *r.Elicitation,
				})
				all <- answer{id, res, err}
			}()
		}
		responses := make(mcp.InputResponses, len(requests))
		for range requests {
			a := <-all
			switch {
			case a.err != nil:
				return nil, fmt.Errorf("asking %q: %w", a.id, a.err)
			case a.res == nil:
				return nil, fmt.Errorf("asking %q: no answer", a.id)
			}
			responses[a.id] = mcp.NewElicitationInputResponse(*a.res)
		}
		return responses, nil
	})
}
