package mcpsdk_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// elicitByResult asks in the way of multi-round-trip requests.
func elicitByResult(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
		return textResult(r.Action), nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "the removal of 3 files"}}}, nil
}

// SPEC 7.9: a sign-in at another site is no approval, and the client hears where it is.
func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		addAsk(s, func(ctx context.Context, ss *mcp.ServerSession) error {
			_, err := ss.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "sign in to read issues", URL: "https://example.com/login?id=1", ElicitationID: "1"})
			return err
		})
		mcpsdk.Install(s, nil)
		h := new(heard)
		opts := h.options()
		opts.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, sdktest.Sleep(ctx, time.Hour)
		}
		opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
		res := call(t, connectClient(t, newTestClient(opts), s, protocol2025), "ask", "t")
		const what = "a person to finish at example.com: sign in to read issues"
		if d := cmp.Diff([]string{"Command timed out waiting for " + what + ". Consider configuring a longer timeout."}, texts(res)); d != "" || outcome(res)["exitCode"] != 124.0 {
			t.Error(d)
		}
		if all := h.list(); len(all) < 2 || all[0].Message != "Waiting for "+what+" (up to 2m0s)" || all[1].Message != "Waiting for "+what+" (10s so far, 1m50s left)" {
			t.Errorf("%+v", all)
		}
	})
}

// addAsk adds a tool that asks its client for something.
func addAsk(s *mcp.Server, ask func(context.Context, *mcp.ServerSession) error) {
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := ask(ctx, req.Session); err != nil {
			return nil, err
		}
		return textResult("done"), nil
	})
}

// SPEC 7.10: a request of a tool to the client holds the idle check only where that is wanted, and not under an execution
// that the tool has begun. What holds it has a limit of its own.
func TestRequestsOfATool(t *testing.T) {
	sample := func(ctx context.Context, ss *mcp.ServerSession) error {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		_, err := ss.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		return err
	}
	roots := func(ctx context.Context, ss *mcp.ServerSession) error {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		_, err := ss.ListRoots(ctx, nil)
		return err
	}
	limited := func(ctx context.Context, ss *mcp.ServerSession) error {
		return timeout.Run(ctx, func(ctx context.Context) error { return sample(ctx, ss) }, timeout.Config{Idle: 7 * time.Second})
	}
	const idle = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
	for _, tt := range []struct {
		name    string
		ask     func(context.Context, *mcp.ServerSession) error
		held    bool
		replies time.Duration
		want    string
		said    string
	}{
		{"not held", sample, false, 6 * time.Second, idle, ""},
		{"held", sample, true, 59 * time.Second, "done", "Waiting for an answer of the model ("},
		{"roots", roots, true, 0, "done", "Waiting for the client's list of roots ("},
		{"under an execution of the tool's own", limited, true, 8 * time.Second, idle, ""},
	} {
		sdktest.Bubble(t, tt.name, func(t *testing.T) {
			s := newTestServer()
			addAsk(s, tt.ask)
			o := &mcpsdk.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Second}, Await: progress.Wait{Limit: 1, ProgressLimit: 1}}
			if tt.held {
				o.Requests = &progress.Wait{Limit: 20 * time.Second, ProgressLimit: 60 * time.Second}
			}
			mcpsdk.Install(s, o)
			h := new(heard)
			client := h.options()
			//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
			client.CreateMessageHandler = func(ctx context.Context, _ *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				if err := sdktest.Sleep(ctx, tt.replies); err != nil {
					return nil, err
				}
				//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
				return &mcp.CreateMessageResult{Model: "a model", Role: "assistant", Content: &mcp.TextContent{Text: "x"}}, nil
			}
			res := call(t, connectClient(t, newTestClient(client), s, protocol2025), "ask", "t")
			if d := cmp.Diff(tt.want, texts(res)[0]); d != "" {
				t.Error(d)
			}
			synctest.Wait()
			all := slices.DeleteFunc(h.list(), func(n mcp.ProgressNotificationParams) bool { return n.Message == "" })
			if (len(all) > 0) != (tt.said != "") {
				t.Errorf("%+v", all)
			}
			for _, n := range all {
				if !strings.HasPrefix(n.Message, tt.said) {
					t.Errorf("message %q, want %s...", n.Message, tt.said)
				}
			}
		})
	}
}
