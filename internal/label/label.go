// Package label connects package request to package timeout: it says what a client's request is about, for the
// log of its execution, whose name is only the method.
package label

import "context"

// A Request holds what a log record says about a request in addition to its method. A field that is "" is left out.
type Request struct {
	Tool   string // the tool that is called
	Server string // the name of the server
}

type key struct{}

// With returns a context with the label of the request that is made under it.
func With(ctx context.Context, r Request) context.Context {
	if r == (Request{}) && Of(ctx) == r {
		return ctx
	}
	return context.WithValue(ctx, key{}, r)
}

// Of returns the label of ctx.
func Of(ctx context.Context) Request {
	r, _ := ctx.Value(key{}).(Request)
	return r
}
