package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type toolInput struct {
	Model     string `json:"model,omitempty" jsonschema:"a file in Promela, or a built-in model: correct, deadlock, assertion or huge"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"stop the search after this many milliseconds, up to the ceiling of the tool"`
}

// descriptions are the texts by which a model knows the tools.
var descriptions = map[string]string{
	"tlc_check":   "Searches every state of a model for errors, for as long as there is progress.",
	"tlc_smoke":   "Searches a model a hundred steps deep for errors, within 2 minutes unless timeoutMs says otherwise.",
	"tlc_explore": "Searches what it can of a huge state space for errors, within 10 minutes unless timeoutMs says otherwise.",
}

// newServer returns an MCP server with the same tools. Install puts them under the limits of the
// policy, with timeoutMs, and sends their progress, at most once per interval.
func newServer(c *checker, p *policy.Policy, every time.Duration) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tlc", Version: "v1"}, nil)
	for _, t := range tools {
		mcp.AddTool(s, &mcp.Tool{
			Name: t.name, Description: descriptions[t.name],
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, t.serve(c))
	}
	mcpsdk.Install(s, &mcpsdk.Options{Policy: p, ArgumentTimeout: true, Declare: true, Interval: every})
	return s
}

// serve returns the tool as a handler, which knows no limits: those come with the context.
func (t tool) serve(c *checker) mcp.ToolHandlerFor[toolInput, any] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, in toolInput) (*mcp.CallToolResult, any, error) {
		m, err := loadModel(slices.DeleteFunc([]string{in.Model}, func(s string) bool { return s == "" }), t.model)
		if err != nil {
			return nil, nil, err
		}
		begun := time.Now()
		var report strings.Builder
		out := &printer{w: &report}
		f, err := c.check(ctx, m, t.search, out)
		f.elapsed = time.Since(begun)
		res := new(mcp.CallToolResult)
		if f.result != nil && f.result.Reason != procgroup.Exited {
			// The command's own message comes first, such as "Spin process timed out after 120000ms."
			mcpsdk.SetResult(res, err, strings.Join(excerpt(f.result.Combined.String(), false), "\n"))
			return res, nil, nil
		}
		out.finding(f, err)
		out.output(f, false)
		res.Content = []mcp.Content{&mcp.TextContent{Text: report.String()}}
		// An error in a model is a result, which the tool is for.
		if wrong := (*modelError)(nil); err != nil && !errors.As(err, &wrong) {
			res.SetError(err)
		}
		return res, nil, nil
	}
}

// serveStdio serves one client on stdin and stdout until ctx ends or the client goes. Calls in progress
// are answered first.
func serveStdio(ctx context.Context, c *checker, logger *slog.Logger) error {
	p := limitsOfTools(logger)
	if _, err := p.SessionTimeout(); err != nil { // a bad setting is better found now than by the first call
		return err
	}
	return mcpsdk.Serve(ctx, newServer(c, p, 0), &mcp.StdioTransport{}, 0)
}

// update returns the progress for a client. The number in the message is that of the progress, so that
// no client shows it twice.
func (s standing) update() progress.Update {
	return progress.Update{
		Progress: s.states,
		Message:  fmt.Sprintf("%.0f states, depth %d, %.0f MiB", s.states, s.depth, s.memory),
	}
}
