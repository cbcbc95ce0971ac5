package oteltimeout

import (
	"context"
	"maps"
	"slices"
)

// Inject returns a copy of meta, the _meta of a request, with the trace context of ctx added, if there is one. The
// span of the tool at a server that uses this package then becomes a child of the span in ctx:
//
//	params := &mcp.CallToolParams{Name: "search", Meta: oteltimeout.Inject(ctx, nil, oteltimeout.Options{})}
//
// Inject uses only the Propagator of o, and waits for it. meta may be nil, and is not changed.
func Inject(ctx context.Context, meta map[string]any, o Options) map[string]any {
	c := carrier{}
	maps.Copy(c, meta)
	o.propagation().Inject(ctx, c)
	return c
}

// A carrier is a _meta as a propagation.TextMapCarrier. It ignores values that are not strings.
type carrier map[string]any

func (c carrier) Get(key string) string {
	value, _ := c[key].(string)
	return value
}

func (c carrier) Set(key, value string) { c[key] = value }

func (c carrier) Keys() []string { return slices.Collect(maps.Keys(c)) }
