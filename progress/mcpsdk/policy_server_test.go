package mcpsdk_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// An argument that the schema declares is not taken away.
func TestDeclaredTimeoutArgument(t *testing.T) {
	type input struct {
		Path      string `json:"path"`
		TimeoutMs int    `json:"timeoutMs,omitempty"`
	}
	s := newServer()
	mcp.AddTool(s, &mcp.Tool{Name: "typed"}, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		deadline, ok := ctx.Deadline()
		left := time.Until(deadline)
		return textResult(fmt.Sprint(in.TimeoutMs, ok && left <= time.Minute && left > time.Minute-slack)), nil, nil
	})
	mcpsdk.Install(s, nil, mcpsdk.WithArgumentTimeout())
	cs := inMemory(protocol2025)(t, s, nil)
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "typed", Arguments: input{"x", 60000}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"60000 true"}, texts(res)); d != "" {
		t.Error(d)
	}
}

// Where both fire at once, the message is there once.
func TestHandlerUnderTheSamePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := &policy.Policy{Default: &timeout.Config{Total: time.Minute}}
		mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, mcpsdk.WithPolicy(p)))
		mcpsdk.Install(s, p)
		res, err := inMemory(protocol2025)(t, s, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: query{"content"}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"Tool exceeded wall-clock limit of 60s.", "found two files"}, texts(res)); d != "" || outcome(res)["exitCode"] != 124.0 {
			t.Error(d, outcome(res))
		}
	})
}
