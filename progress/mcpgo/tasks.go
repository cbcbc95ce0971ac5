package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// askedKey is a key in the _meta of a call, under which a hook passes the "task" of the params to the middleware.
const askedKey = "io.github.tooldeadline/task"

// taskParam removes the "task" that a hook has put into the _meta of a call, and returns it, or nil if there is none.
func taskParam(r *mcp.CallToolRequest) (in json.RawMessage) {
	if r.Params.Meta == nil {
		return nil
	}
	if of, ok := r.Params.Meta.AdditionalFields[askedKey]; ok {
		in, _ = json.Marshal(of)
		delete(r.Params.Meta.AdditionalFields, askedKey)
		if r.Params.Meta.ProgressToken == nil && len(r.Params.Meta.AdditionalFields) == 0 {
			r.Params.Meta = nil
		}
	}
	return in
}

// reply returns a reply with the given fields or, if err is not nil, with err. From 2026-07-28 on it also sets the HTTP
// status.
func (w *wire) reply(version string, fields map[string]any, err error) reply {
	r := replyOf(fields, err)
	if mcp.IsModernProtocol(version) {
		w.setStatus(r.status())
	}
	return r
}

func replyOf(fields map[string]any, err error) reply {
	var r reply
	if err == nil {
		if r.Result, err = json.Marshal(fields); err == nil {
			return r
		}
	}
	var e *task.Error
	if !errors.As(err, &e) {
		e = &task.Error{Code: mcp.INTERNAL_ERROR, Message: err.Error()}
	}
	r.Error, _ = json.Marshal(e)
	return r
}

// status returns the HTTP status that protocol 2026-07-28 requires of a response with r.
func (r reply) status() int {
	var e struct{ Code int }
	_ = json.Unmarshal(r.Error, &e)
	switch e.Code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.INVALID_PARAMS, mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// outlive runs a call that may become a task or a continuation, and returns the result of the tool, or a handle in its
// place.
func (s *settings) outlive(ctx context.Context, id string, request mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	session := server.ClientSessionFromContext(ctx)
	in := taskParam(&request)
	var meta map[string]any
	if request.Params.Meta != nil {
		meta = request.Params.Meta.AdditionalFields
	}
	c, ok := s.Call(request.Params.Name, in, meta, token(request.Params.Meta) != nil, func() adapter.Caller { return s.client(ctx) })
	if !ok {
		return s.supervise(ctx, id, nil, request, next)
	}
	w := wireOf(ctx, session)
	modern := mcp.IsModernProtocol(c.Caller.Version)
	var state string // the RequestState of the newest result with questions
	run := func(ctx context.Context, of *adapter.Task, answers map[string]json.RawMessage) (*mcp.CallToolResult, error) {
		request := request
		if answers != nil {
			request.Params.MultiRoundTripParams = mcp.MultiRoundTripParams{InputResponses: inputResponses(answers), RequestState: state}
		}
		return s.supervise(ctx, id, of, request, next)
	}
	encode := func(res *mcp.CallToolResult, err error) task.Answer {
		if err == nil && res != nil && res.NeedsInput() {
			state = res.RequestState
		}
		if err != nil {
			res, err = answer(res, err)
		}
		return answerOf(res, err, modern)
	}
	res, err := adapter.Do(ctx, s.Tasks, c, run, encode, func(r *task.Record, fields map[string]any) (*mcp.CallToolResult, error) {
		if r.Form == task.Continued {
			return resultOf(fields)
		}
		return standInResult(replyOf(fields, nil)), nil
	})
	var refused *task.Error
	if w != nil && errors.As(err, &refused) {
		return standInResult(w.reply(c.Caller.Version, nil, refused)), nil // an error of the tool would get another code
	}
	return res, err
}

func inputResponses(answers map[string]json.RawMessage) mcp.InputResponses {
	out := make(mcp.InputResponses, len(answers))
	for key, raw := range answers {
		var r mcp.InputResponse
		if r.UnmarshalJSON(raw) == nil {
			out[key] = r
		}
	}
	return out
}

// answerOf returns the result or the error of a tool as the answer of a task. If modern is set, the protocol is
// 2026-07-28 or later, and the questions in a result become questions of the task.
func answerOf(res *mcp.CallToolResult, err error, modern bool) task.Answer {
	var a task.Answer
	if err == nil && res == nil {
		err = errors.New("the tool has returned no result")
	}
	if err == nil && modern && res.NeedsInput() && len(res.InputRequests) > 0 {
		a.Questions = make(map[string]json.RawMessage, len(res.InputRequests))
		for key, q := range res.InputRequests {
			if a.Questions[key], err = json.Marshal(q); err != nil {
				break
			}
		}
		if err == nil {
			return a
		}
	}
	if err == nil {
		if modern && res.ResultType == "" {
			complete := *res
			complete.ResultType = mcp.ResultTypeComplete
			res = &complete
		}
		if a.Result, err = json.Marshal(res); err == nil {
			return a
		}
	}
	a.Error = new(task.Error)
	if !errors.As(err, &a.Error) {
		a.Error = &task.Error{Code: mcp.INTERNAL_ERROR, Message: err.Error()}
	}
	return a
}

// resultOf converts the JSON fields of a result to a CallToolResult.
func resultOf(fields map[string]any) (*mcp.CallToolResult, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	res := new(mcp.CallToolResult)
	return res, json.Unmarshal(raw, res)
}
