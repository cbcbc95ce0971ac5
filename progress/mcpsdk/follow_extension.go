package mcpsdk

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/task"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// This file is for tasks of protocol 2026-07-28, where the server decides which call becomes a task. Its methods pass
// requests of protocol 2025-11-25 on to follow_legacy.go.

// outgoing returns the method and the params that the transport sends in place of those of the SDK, and the id of the
// task, which is "" for the call itself.
func (f *followed) outgoing(params json.RawMessage) (method, id string, _ json.RawMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listening {
		return f.method, "", params, nil
	}
	var p map[string]json.RawMessage
	if err := json.Unmarshal(params, &p); err != nil {
		return "", "", nil, err
	}
	var meta map[string]json.RawMessage
	if p["_meta"] != nil {
		if err := json.Unmarshal(p["_meta"], &meta); err != nil {
			return "", "", nil, err
		}
	}
	if f.legacy {
		return f.legacyRequest(p, meta)
	}
	var version string
	_ = json.Unmarshal(meta[mcp.MetaKeyProtocolVersion], &version)
	if version < sinceResultType {
		return methodCall, "", params, nil
	}
	meta[mcp.MetaKeyClientCapabilities] = adapter.SetMember(meta[mcp.MetaKeyClientCapabilities], json.RawMessage("{}"), "extensions", task.ExtensionID)
	if f.method != methodCall {
		delete(meta, progressTokenKey)
	}
	if p["_meta"], err = json.Marshal(meta); err != nil {
		return "", "", nil, err
	}
	if method = f.method; method != methodCall {
		own := map[string]json.RawMessage{"_meta": p["_meta"]}
		if given := p["inputResponses"]; given != nil && method == methodGet {
			var answers map[string]json.RawMessage
			if err := json.Unmarshal(given, &answers); err != nil {
				return "", "", nil, err
			}
			for key := range answers {
				f.answered[key] = true
			}
			f.answers = given
		}
		// An update that was not answered is sent again; the server ignores answers that it has received before.
		if f.answers != nil && method == methodGet {
			method, own["inputResponses"] = methodUpdate, f.answers
		}
		id, p = f.id, own
		if p["taskId"], err = json.Marshal(id); err != nil {
			return "", "", nil, err
		}
	}
	params, err = json.Marshal(p)
	return method, id, params, err
}

// incoming records the answer to a request, and returns the result or the error that the SDK gets in its place.
func (f *followed) incoming(method string, result json.RawMessage, failed *jsonrpc.Error) (json.RawMessage, *jsonrpc.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if f.listening {
		f.heard = append(json.RawMessage(nil), result...)
		return result, nil
	}
	if f.legacy && method != methodCancel {
		return f.legacyResponse(method, result)
	}
	if method == methodUpdate {
		f.answers = nil
	}
	if method == methodUpdate || method == methodCancel {
		return nothingYet, nil
	}
	var t struct {
		ResultType string                     `json:"resultType"`
		ID         string                     `json:"taskId"`
		Status     task.Status                `json:"status"`
		Said       string                     `json:"statusMessage"`
		Poll       float64                    `json:"pollIntervalMs"`
		TTL        *float64                   `json:"ttlMs"`
		Questions  map[string]json.RawMessage `json:"inputRequests"`
		Result     json.RawMessage            `json:"result"`
		Error      *jsonrpc.Error             `json:"error"`
	}
	err := adapter.Unmarshal(result, &t)
	if method == methodCall && (err != nil || t.ResultType != "task") {
		return result, nil // the result of the tool
	}
	if err != nil || t.ID == "" || method == methodGet && t.ID != f.id {
		return nil, errNoTask()
	}
	f.id, f.status, f.message = t.ID, t.Status, t.Said
	f.noteSchedule(t.Poll, t.TTL)
	switch t.Status {
	case task.Completed:
		if len(t.Result) == 0 {
			break // a handle has no result
		}
		return t.Result, nil
	case task.Failed:
		if t.Error == nil {
			if method == methodCall {
				break
			}
			t.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the task has failed"}
		}
		f.failed = t.Error
		return nil, t.Error
	case task.InputRequired:
		open := make(map[string]json.RawMessage)
		for key, question := range t.Questions {
			if !f.answered[key] {
				open[key] = question
			}
		}
		if len(open) == 0 {
			break
		}
		if data, err := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": open}); err == nil {
			return data, nil
		}
	}
	if method == methodCall && t.Status.Final() {
		f.status = task.Working // the result still has to be fetched
	}
	return nothingYet, nil
}
