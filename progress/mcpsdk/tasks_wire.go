package mcpsdk

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
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

// amended returns a copy of a result of server/discover, initialize or tools/list that says what the options add to it,
// and any other result unchanged. The tools and capabilities in it are copied too, because the server shares them.
func (s *settings) amended(ctx context.Context, req mcp.Request, res mcp.Result) mcp.Result {
	if !s.Declare && s.Tasks == nil {
		return res
	}
	switch r := res.(type) {
	case *mcp.DiscoverResult:
		if r == nil {
			break
		}
		s.Initialized(clientOf(req))
		out := *r
		out.Capabilities = s.capabilities(r.Capabilities)
		if s.offered {
			out.Capabilities.AddExtension(task.ExtensionID, nil)
		}
		return &out
	case *mcp.InitializeResult:
		if r == nil {
			break
		}
		s.Initialized(clientOf(req))
		out := *r
		out.Capabilities = s.capabilities(r.Capabilities)
		if !s.offered || r.ProtocolVersion != sinceTasks || !wrapped(ctx, req) {
			return &out
		}
		fields := make(map[string]any)
		convert(out, &fields)
		c := s.callerOf(ctx, req)
		offer := map[string]any{"cancel": struct{}{}, "requests": json.RawMessage(`{"tools":{"call":{}}}`)}
		if c.Session != "" || c.Principal != "" { // otherwise adapter.Serve lists no tasks
			offer["list"] = struct{}{}
		}
		capabilities, _ := fields["capabilities"].(map[string]any)
		capabilities["tasks"] = offer
		return &wireResult{fields: fields}
	case *mcp.ListToolsResult:
		if r != nil {
			return s.listed(ctx, req, r)
		}
	}
	return res
}

// capabilities returns a copy of the capabilities of the server with the limits that it declares.
func (s *settings) capabilities(c *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	out := new(mcp.ServerCapabilities)
	if c != nil {
		*out = *c
	}
	out.Extensions = maps.Clone(out.Extensions)
	if limits, _, _ := s.Listing("", adapter.Caller{}); limits != nil {
		out.AddExtension(policy.DeclarationKey, limits.Object())
	}
	return out
}

func (s *settings) listed(ctx context.Context, req mcp.Request, res *mcp.ListToolsResult) mcp.Result {
	client := clientOf(req)
	if session, _ := req.GetSession().(*mcp.ServerSession); session != nil && wrapped(ctx, req) {
		client.Version = versionOf(session, metaOf(req))
	}
	out := *res
	out.Tools = make([]*mcp.Tool, len(res.Tools))
	support := make(map[string]string)
	for i, t := range res.Tools {
		if t == nil {
			continue
		}
		own := *t
		limits, taskSupport, unlisted := s.Listing(t.Name, client)
		if limits != nil {
			own.Meta = withField(t.Meta, field{policy.DeclarationKey, *limits})
		}
		if unlisted {
			own.OutputSchema = nil
		}
		if out.Tools[i] = &own; taskSupport != "" {
			support[t.Name] = taskSupport
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
