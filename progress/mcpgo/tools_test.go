package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const ms = time.Millisecond

// slack is how long a test waits for what must happen, on a busy machine.
const slack = 20 * time.Second

// never is a limit that must not fire in a test.
const never = time.Hour

// deafFor is how long the deaf tool does not listen, if it is not told.
const deafFor = 3 * time.Second

// policy has the limits that the tools of newServer are named for.
var toolPolicy = &policy.Policy{
	Default: &timeout.Config{Total: never, Grace: slack},
	Lookup:  func(string) (string, bool) { return "", false },
	Tools: map[string]policy.Tool{
		"total":    {Limits: &timeout.Config{Total: 60 * ms, Grace: slack}},
		"idle":     {Limits: &timeout.Config{Total: never, Idle: 60 * ms, Grace: slack}},
		"deaf":     {Limits: &timeout.Config{Total: 60 * ms, Grace: 40 * ms}},
		"partial":  {Limits: &timeout.Config{Total: 60 * ms, Grace: slack}},
		"asks":     {Limits: &timeout.Config{Total: 60 * ms, Grace: slack}},
		"alive":    {Limits: &timeout.Config{Total: never, Idle: 3 * time.Second, Grace: slack}},
		"elicit":   {Limits: &timeout.Config{Total: never, Idle: 2200 * ms, Grace: slack}},
		"question": {Limits: &timeout.Config{Total: never, Idle: 2200 * ms, Grace: slack}},
		"ceiling":  {MaxTotal: 60 * ms},
	},
}

var errOwn = errors.New("no such file")

// until waits for the end of the context, and says why.
func until(ctx context.Context) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// heardKey is the key of a function that waits until the client has heard what the tool has just said.
type heardKey struct{}

// pause takes as long as it says, or until what the tool has just said has been heard, where the test can
// tell: on a busy machine that may take longer.
func pause(ctx context.Context, millis float64) {
	if heard, ok := ctx.Value(heardKey{}).(func()); ok && millis > 0 {
		heard()
		return
	}
	time.Sleep(time.Duration(millis * float64(ms)))
}

// A server with tools that are stopped, or not, each under its own limits.
func newServer(opts ...mcpgo.InstallOption) *server.MCPServer {
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false), server.WithElicitation(),
		server.WithTaskCapabilities(true, true, true))
	mcpgo.Install(s, toolPolicy, append([]mcpgo.InstallOption{mcpgo.WithInterval(1), mcpgo.WithMetaTimeout(), mcpgo.WithArgumentTimeout()}, opts...)...)
	add := func(name string, h server.ToolHandlerFunc) { s.AddTool(mcp.NewTool(name), h) }
	wait := func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { return until(ctx) }

	add("noop", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	})
	add("own", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errOwn })
	add("panic", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("boom") })
	add("goexit", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: 1})
		pause(ctx, r.GetFloat("lingerMs", 0))
		runtime.Goexit()
		return nil, nil
	})
	for _, name := range []string{"total", "idle", "ceiling", "wait"} {
		add(name, wait)
	}
	add("deaf", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(time.Duration(r.GetFloat("forMs", float64(deafFor/ms)) * float64(ms)))
		return mcp.NewToolResultText("too late"), nil
	})
	shared := &mcp.CallToolResult{
		Result:            mcp.Result{Meta: &mcp.Meta{AdditionalFields: map[string]any{"k": "v"}}},
		Content:           []mcp.Content{mcp.NewTextContent("half of it")},
		StructuredContent: map[string]any{"lines": 3},
	}
	add("partial", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return shared, nil
	})
	add("asks", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return server.NewInputRequestBuilder("").Roots("r").ToolResult(), nil
	})
	// Beats for longer than its idle limit.
	add("alive", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 50 {
			time.Sleep(90 * ms)
			heartbeat.Beat(ctx)
		}
		return mcp.NewToolResultText("done"), nil
	})
	// Says that it runs, and has more to say at its end, if no size is given, than a pipe holds.
	add("long", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: 1})
		<-ctx.Done()
		return mcp.NewToolResultText(strings.Repeat("x", r.GetInt("size", 100_000))), nil
	})
	// Reports n updates, and returns lingerMs after the last.
	add("report", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		n := r.GetInt("n", 1)
		for i := range n {
			if i > 0 {
				pause(ctx, r.GetFloat("everyMs", 0))
			}
			progress.Report(ctx, progress.Update{Progress: float64(i + 1), Total: float64(n), Message: r.GetString("message", "")})
		}
		pause(ctx, r.GetFloat("lingerMs", 0))
		return mcp.NewToolResultText("done"), nil
	})
	add("elicit", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		limit := time.Duration(r.GetFloat("limitMs", 20000) * float64(ms))
		res, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "rm -r build", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}}, progress.Wait{Limit: limit, ProgressLimit: limit})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(string(res.Action)), nil
	})
	// Returns its questions, one or two, instead.
	add("question", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		first := server.ElicitationResponse(r.Params.InputResponses, "first")
		if first == nil {
			ask := server.NewInputRequestBuilder("asked")
			for i, id := range []string{"first", "second"}[:r.GetInt("n", 1)] {
				ask.Elicit(id, mcp.ElicitationParams{
					Message: []string{"rm -r build", "git push"}[i], RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
				})
			}
			return ask.ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprint(len(r.Params.InputResponses), " ", first.Action, " ", r.Params.RequestState)), nil
	})
	add("endless", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return server.NewInputRequestBuilder("").Elicit("q", mcp.ElicitationParams{Message: "again", RequestedSchema: map[string]any{"type": "object"}}).ToolResult(), nil
	})
	return s
}
