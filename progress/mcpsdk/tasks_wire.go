package mcpsdk

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A wireResult is a result for which the SDK has no type. Its fields are sent as they are, except for additions to
// _meta.
type wireResult struct {
	mcp.ResultBase // has the members that the SDK adds to _meta
	fields         map[string]any
}

// MarshalJSON returns the fields. Their _meta also gets the members that the SDK has added.
func (r *wireResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return json.Marshal(r.fields)
	}
	fields := maps.Clone(r.fields)
	meta := maps.Clone(map[string]any(r.Meta))
	if own, ok := fields["_meta"]; ok {
		data, err := json.Marshal(own)
		if err != nil {
			return nil, err
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, err
		}
		for key, value := range all {
			meta[key] = value
		}
	}
	fields["_meta"] = meta
	return json.Marshal(fields)
}

// UnmarshalJSON reads the fields of the result. Only a peer in memory decodes a wireResult.
func (r *wireResult) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &r.fields) }

// taskParams are the params of a tasks/* method, as they were received.
type taskParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// UnmarshalJSON keeps a copy of data, and decodes its _meta.
func (p *taskParams) UnmarshalJSON(data []byte) error {
	p.raw = append(json.RawMessage(nil), data...)
	var base struct {
		Meta mcp.Meta `json:"_meta"`
	}
	err := adapter.Unmarshal(data, &base)
	p.Meta = base.Meta
	return err
}

// convert decodes the JSON of in into out. It panics if that fails, which no pair of types in this package does.
func convert(in, out any) {
	data, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(err)
	}
}

// withTasks returns a copy of a result of server/discover, initialize or tools/list that declares the tasks of the
// server, and any other result unchanged. From tools/list it also removes output schemas, see withoutOutput.
func (s *settings) withTasks(ctx context.Context, req mcp.Request, res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.DiscoverResult:
		if r == nil || !s.offered {
			break
		}
		out := *r
		if r.Capabilities == nil {
			out.Capabilities = new(mcp.ServerCapabilities)
		} else {
			copied := *r.Capabilities
			out.Capabilities = &copied
		}
		out.Capabilities.Extensions = maps.Clone(out.Capabilities.Extensions)
		out.Capabilities.AddExtension(task.ExtensionID, nil)
		return &out
	case *mcp.InitializeResult:
		if r == nil || !s.offered || r.ProtocolVersion != sinceTasks || !wrapped(ctx, req) {
			break
		}
		fields := make(map[string]any)
		convert(r, &fields)
		capabilities, _ := fields["capabilities"].(map[string]any)
		if capabilities == nil {
			capabilities = make(map[string]any)
			fields["capabilities"] = capabilities
		}
		c := s.callerOf(ctx, req)
		offer := map[string]any{"cancel": struct{}{}, "requests": json.RawMessage(`{"tools":{"call":{}}}`)}
		if c.Session != "" || c.Principal != "" { // otherwise adapter.Serve lists no tasks
			offer["list"] = struct{}{}
		}
		capabilities["tasks"] = offer
		return &wireResult{fields: fields}
	case *mcp.ListToolsResult:
		if r != nil {
			return s.toolsWithTasks(ctx, req, r)
		}
	}
	return res
}

func (s *settings) toolsWithTasks(ctx context.Context, req mcp.Request, res *mcp.ListToolsResult) mcp.Result {
	out := *res
	if s.Continuation != nil {
		client := clientOf(req)
		out.Tools = make([]*mcp.Tool, len(res.Tools))
		for i, t := range res.Tools {
			out.Tools[i] = s.withoutOutput(t, client)
		}
	}
	session, _ := req.GetSession().(*mcp.ServerSession)
	if !s.offered || session == nil || versionOf(session, metaOf(req)) != sinceTasks || !wrapped(ctx, req) {
		return &out
	}
	support := make(map[string]string)
	for _, t := range out.Tools {
		calls, _ := s.Settings(t.Name)
		if how := adapter.LegacySupport(calls.Policy.Soft(t.Name)); how != "" {
			support[t.Name] = how
		}
	}
	if len(support) == 0 {
		return &out
	}
	fields := make(map[string]any)
	convert(&out, &fields)
	tools, _ := fields["tools"].([]any)
	for _, t := range tools {
		tool, _ := t.(map[string]any)
		if name, _ := tool["name"].(string); support[name] != "" {
			tool["execution"] = map[string]any{"taskSupport": support[name]}
		}
	}
	return &wireResult{fields: fields}
}

// withoutOutput returns a tool without its output schema if calls of the client may be continued. The result of a call
// that still runs has no structured content, and a client refuses such a result if the tool lists an output schema.
func (s *settings) withoutOutput(t *mcp.Tool, client adapter.Caller) *mcp.Tool {
	if t == nil || t.OutputSchema == nil || !s.Unlisted(t.Name, client) {
		return t
	}
	out := *t
	out.OutputSchema = nil
	return &out
}

// wrapped reports whether the server can see that a call asks for a task: the request has come through WrapHTTP, or the
// connection through WrapTransport.
func wrapped(ctx context.Context, req mcp.Request) bool {
	if req.GetExtra() != nil {
		_, ok := ctx.Value(requestKey{}).(*httpRequest)
		return ok
	}
	session, _ := req.GetSession().(*mcp.ServerSession)
	if session == nil {
		return false
	}
	p := session.InitializeParams()
	return p != nil && p.Meta[wrappedKey] == true
}
