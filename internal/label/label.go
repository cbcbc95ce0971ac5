// Package label connects package request to package timeout: it carries what the log of an execution has
// about a client's request in addition to its method, which is the name of the execution.
package label

import "context"

// A Request describes a request in a log record, in addition to its method. Empty fields are left out of the record.
type Request struct {
	Tool   string // the tool that is called
	Server string // the name of the server
}

type key struct{}

// With returns a context with the label r for a request that is made with the context. It replaces the label of ctx,
// even if r is the zero Request.
func With(ctx context.Context, r Request) context.Context {
	if r == (Request{}) && Of(ctx) == r {
		return ctx
	}
	return context.WithValue(ctx, key{}, r)
}

// Of returns the label of ctx, or the zero Request if there is none.
func Of(ctx context.Context) Request {
	r, _ := ctx.Value(key{}).(Request)
	return r
}
