package main

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hang waits for what never comes, without a sign of life, as a tool does whose peer is
// gone. It listens to its context.
func hang(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

type deafInput struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to ignore everything, from 0 to 600"`
}

// deaf does not listen to its context, as a call into a library that takes none. Nothing in
// Go can stop it; the caller gets its answer all the same.
func deaf(_ context.Context, _ *mcp.CallToolRequest, in deafInput) (*mcp.CallToolResult, any, error) {
	if !(in.Seconds >= 0 && in.Seconds <= 600) {
		return nil, nil, fmt.Errorf("seconds: %v is not from 0 to 600", in.Seconds)
	}
	time.Sleep(time.Duration(in.Seconds * float64(time.Second)))
	return text(fmt.Sprintf("ignored everything for %v seconds", in.Seconds)), nil, nil
}
