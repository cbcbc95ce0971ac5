package main

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hang waits without a heartbeat until its context ends, like a tool whose peer does not answer.
func hang(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

type deafInput struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to ignore everything, from 0 to 600"`
}

// deaf ignores its context, like a call into a library without contexts. Nothing in Go can stop it, so it is abandoned,
// and the caller gets an answer at the limit.
func deaf(_ context.Context, _ *mcp.CallToolRequest, in deafInput) (*mcp.CallToolResult, any, error) {
	if !(in.Seconds >= 0 && in.Seconds <= 600) {
		return nil, nil, fmt.Errorf("seconds=%v: want a number from 0 to 600", in.Seconds)
	}
	time.Sleep(time.Duration(in.Seconds * float64(time.Second)))
	return text(fmt.Sprintf("ignored everything for %v seconds", in.Seconds)), nil, nil
}
