package mcpsdk

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// installTasks registers the tasks/* methods and the wait tool with the server, if the options need them. The
// middleware answers the methods before their handlers are called.
func (s *settings) installTasks(server *mcp.Server) {
	if s.offered {
		for _, method := range []string{methodGet, methodUpdate, methodCancel, methodResult, "tasks/list"} {
			err := mcp.AddReceivingCustomMethod(server, method, func(context.Context, *mcp.ServerSession, *taskParams) (*wireResult, error) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the middleware that answers it is not installed"}
			})
			if err != nil {
				panic(err) // a later SDK may implement the method
			}
		}
	}
	if s.Continuation != nil {
		var tool mcp.Tool
		convert(s.Continuation.Definition(), &tool)
		server.AddTool(&tool, s.waitForResult)
	}
}

// serveTask answers a tasks/* request.
func (s *settings) serveTask(ctx context.Context, method string, req *mcp.ServerRequest[*taskParams]) (mcp.Result, error) {
	caller := s.callerOf(ctx, req)
	var params json.RawMessage
	if req.Params != nil {
		params = req.Params.raw
	}
	if err := checkName(caller, method, params, req.Extra); err != nil {
		return nil, err
	}
	ctx, release := untilGone(ctx, req.Session)
	defer release()
	fields, err := adapter.Serve(ctx, s.Tasks, nil, caller, method, params)
	if err != nil {
		return nil, wireError(err)
	}
	return &wireResult{fields: fields}, nil
}

// checkName returns an error if the header Mcp-Name is not the id of the task. From protocol 2026-07-28 on a client
// must send that header over HTTP.
func checkName(caller adapter.Caller, method string, params json.RawMessage, extra *mcp.RequestExtra) error {
	if extra == nil || extra.Header == nil || caller.Version < sinceResultType || method != methodGet && method != methodUpdate && method != methodCancel {
		return nil // adapter.Serve refuses another method
	}
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = adapter.Unmarshal(params, &p)
	if got := extra.Header.Get("Mcp-Name"); got != p.TaskID {
		return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "Mcp-Name must be the task's id, taskId in the params"}
	}
	return nil
}

// call answers a tools/call with its result, or with the handle of the task or the continuation that it has become.
func (s *settings) call(ctx context.Context, method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	answered := whenAnswered(ctx)
	ctx, release := untilGone(ctx, req.Session)
	defer release()
	if _, waits := s.Settings(req.Params.Name); s.Tasks != nil && !waits {
		if c, ok := s.taskCall(ctx, req); ok {
			return s.callAsTask(ctx, c, answered, method, req, next)
		}
	}
	return s.supervise(ctx, nil, answered, method, req, next)
}

// taskCall returns the argument of adapter.Do for a call; see [adapter.Server.Call].
func (s *settings) taskCall(ctx context.Context, req *mcp.CallToolRequest) (c adapter.Call, ok bool) {
	var in json.RawMessage
	if of, ok := req.Params.Meta[askedKey]; ok {
		in, _ = json.Marshal(of)
		delete(req.Params.Meta, askedKey)
	}
	return s.Call(req.Params.Name, in, req.Params.Meta, req.Params.GetProgressToken() != nil, func() adapter.Caller { return s.callerOf(ctx, req) })
}

func (s *settings) callAsTask(ctx context.Context, c adapter.Call, answered func(func()), method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	var state string // the RequestState of the newest result with questions
	run := func(ctx context.Context, ran *adapter.Task, answers map[string]json.RawMessage) (mcp.Result, error) {
		if ran != nil {
			growStack() // a task runs on a new goroutine
		}
		req := req
		if answers != nil {
			var err error
			if req, err = withAnswers(req, answers, state); err != nil {
				return nil, err
			}
		}
		return s.supervise(ctx, ran, answered, method, req, next)
	}
	encode := func(res mcp.Result, err error) task.Answer {
		if err != nil {
			res, err = answer(req, res, err)
		}
		if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.InputRequests != nil {
			state = r.RequestState
		}
		return encoded(res, err)
	}
	res, err := adapter.Do(ctx, s.Tasks, c, run, encode, func(r *task.Record, fields map[string]any) (mcp.Result, error) {
		if r.Form != task.Continued {
			return &wireResult{fields: fields}, nil
		}
		s.abortWithSession(req.Session, c.Caller.Session)
		return asResult(req, fields)
	})
	return res, wireError(err)
}

// withAnswers returns a copy of the request with the answers to the questions that the tool has returned.
func withAnswers(req *mcp.CallToolRequest, answers map[string]json.RawMessage, state string) (*mcp.CallToolRequest, error) {
	data, err := json.Marshal(map[string]any{"inputResponses": answers})
	if err != nil {
		return nil, err
	}
	params := *req.Params
	params.Meta = maps.Clone(params.Meta)
	params.InputResponses, params.RequestState = nil, state
	var p mcp.CallToolParamsRaw
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	params.InputResponses = p.InputResponses
	out := *req
	out.Params = &params
	return &out, nil
}

// encoded returns the result or the error of a tool as the answer of a task. The questions in a result become questions
// of the task.
func encoded(res mcp.Result, err error) task.Answer {
	if err == nil {
		var data []byte
		if data, err = json.Marshal(res); err == nil {
			if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.InputRequests != nil {
				var asked struct {
					Questions map[string]json.RawMessage `json:"inputRequests"`
				}
				if err = json.Unmarshal(data, &asked); err == nil {
					return task.Answer{Questions: asked.Questions}
				}
			} else {
				return task.Answer{Result: data}
			}
		}
	}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return task.Answer{Error: &task.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}}
	}
	return task.Answer{Error: &task.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}}
}

// asResult converts the JSON fields of a result to a CallToolResult, with the resultType that the protocol of req
// requires.
func asResult(req *mcp.CallToolRequest, fields map[string]any) (*mcp.CallToolResult, error) {
	out := newResult(req)
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if req.ProtocolVersion() >= sinceResultType && fields["resultType"] == nil {
		with := maps.Clone(fields)
		with["resultType"] = "complete"
		if data, err = json.Marshal(with); err != nil {
			return nil, err
		}
	}
	return out, json.Unmarshal(data, out)
}

// abortWithSession starts a goroutine that ends the continuations of a session when the session ends, unless there is
// one already. name is the Session of the caller; if it is "", the continuations belong to no session.
func (s *settings) abortWithSession(session *mcp.ServerSession, name string) {
	if name == "" {
		return
	}
	if _, known := s.watched.LoadOrStore(name, nil); known {
		return
	}
	go func() {
		_ = session.Wait()
		s.watched.Delete(name) // before EndSession, so that a call that is continued in between gets a goroutine of its own
		adapter.EndSession(s.Tasks, name)
	}()
}

// waitForResult is the handler of the wait tool. It returns the result of a continued call, or says that the call still
// runs.
func (s *settings) waitForResult(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params, err := json.Marshal(req.Params)
	if err != nil {
		return nil, err
	}
	fields, err := adapter.Serve(ctx, s.Tasks, s.Continuation, s.callerOf(ctx, req), methodCall, params)
	if err != nil {
		return nil, wireError(err)
	}
	return asResult(req, fields)
}
