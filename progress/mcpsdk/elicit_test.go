package mcpsdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const noAnswerText = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."

// person answers after a while, and says when the question was taken back.
func person(h *heard, after time.Duration, takenBack *time.Duration) *mcp.ClientOptions {
	start := time.Now()
	opts := h.options()
	opts.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if err := sleep(ctx, after); err != nil {
			*takenBack = time.Since(start)
			return nil, err
		}
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	return opts
}

// elicit is a raw handler that asks and returns what comes.
func elicit(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "the removal of 3 files"})
	if err != nil {
		return nil, err
	}
	return textResult(res.Action), nil
}

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
		s := newServer()
		s.AddTool(&mcp.Tool{Name: "issues", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "sign in to read issues", URL: "https://example.com/login?id=1", ElicitationID: "1"})
			return nil, err
		})
		mcpsdk.Install(s, nil)
		h, takenBack := new(heard), time.Duration(0)
		opts := person(h, time.Hour, &takenBack)
		opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
		res := call(t, inMemory(protocol2025)(t, s, opts), "issues", "t")
		const what = "a person to finish at example.com: sign in to read issues"
		if d := cmp.Diff([]string{"Command timed out waiting for " + what + ". Consider configuring a longer timeout."}, texts(res)); d != "" || outcome(res)["exitCode"] != 124.0 {
			t.Error(d)
		}
		if all := h.list(); len(all) < 2 || all[0].Message != "Waiting for "+what+" (up to 2m0s)" || all[1].Message != "Waiting for "+what+" (10s so far, 1m50s left)" {
			t.Errorf("%+v", all)
		}
	})
}

// SPEC 7.10: a request of a tool to the client holds the idle check where that is wanted, under a
// limit of its own; otherwise the idle limit of the tool finds a client that does not reply.
func TestRequestsOfATool(t *testing.T) {
	sample := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		res, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		if err != nil {
			return nil, err
		}
		return textResult(res.Model), nil
	}
	roots := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		_, err := req.Session.ListRoots(ctx, nil)
		return textResult("roots"), err
	}
	limited := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return timeout.Do(ctx, func(ctx context.Context) (*mcp.CallToolResult, error) { return sample(ctx, req) }, timeout.Config{Idle: 7 * time.Second})
	}
	const idle = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
	held := []mcpsdk.InstallOption{mcpsdk.WithAwait(progress.Wait{Limit: 1, ProgressLimit: 1}), mcpsdk.WithRequests(progress.Wait{Limit: 20 * time.Second, ProgressLimit: 60 * time.Second})}
	for _, tt := range []struct {
		name    string
		tool    mcp.ToolHandler
		token   any
		opts    []mcpsdk.InstallOption
		replies time.Duration
		want    string
		after   time.Duration
		said    string
	}{
		{"not held", sample, "t", nil, 6 * time.Second, idle, 5 * time.Second, ""},
		{"held", sample, "t", held, 59 * time.Second, "a model", 59 * time.Second, "Waiting for an answer of the model ("},
		{"held, late", sample, "t", held, 61 * time.Second, "Command timed out waiting for an answer of the model. Consider configuring a longer timeout.", 60 * time.Second, "Waiting for an answer of the model ("},
		{"held, no token, late", sample, nil, held, 21 * time.Second, "Command timed out waiting for an answer of the model. Consider configuring a longer timeout.", 20 * time.Second, ""},
		{"roots", roots, "t", held, 0, "roots", 0, "Waiting for the client's list of roots ("},
		{"under an execution of the tool's own", limited, "t", held, 8 * time.Second, "No progress for 5s (idle timeout). Tool should call heartbeat() during long work.", 5 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.AddTool(&mcp.Tool{Name: "ask", InputSchema: anyInput}, tt.tool)
				mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Total: time.Hour, Idle: 5 * time.Second}}, tt.opts...)
				h := new(heard)
				opts := h.options()
				//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
				opts.CreateMessageHandler = func(ctx context.Context, _ *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					if err := sleep(ctx, tt.replies); err != nil {
						return nil, err
					}
					//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
					return &mcp.CreateMessageResult{Model: "a model", Role: "assistant", Content: &mcp.TextContent{Text: "x"}}, nil
				}
				cs := inMemory(protocol2025)(t, s, opts)
				start := time.Now()
				res := call(t, cs, "ask", tt.token)
				if took := time.Since(start); took < tt.after || took > tt.after+5*time.Millisecond {
					t.Errorf("answered after %v, want %v", took, tt.after)
				}
				if d := cmp.Diff(tt.want, texts(res)[0]); d != "" {
					t.Error(d)
				}
				synctest.Wait()
				for _, n := range h.list() {
					if tt.said == "" && n.Message != "" || !strings.HasPrefix(n.Message, tt.said) {
						t.Errorf("message %q, want %s...", n.Message, tt.said)
					}
				}
				if tt.said != "" && len(h.list()) < int(tt.after/(15*time.Second))+1 {
					t.Errorf("%d messages", len(h.list()))
				}
			})
		})
	}
}

// SPEC 7.9: inside a host's 60 s without progress the question is over in time; a host that
// looks at progress waits on.
func TestElicitationUnderAHost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reset bool
		limit time.Duration
		want  string
	}{
		{"no reset", false, progress.DefaultAwaitLimit, noAnswerText},
		{"reset on progress", true, 5 * time.Minute, "accept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.AddTool(&mcp.Tool{Name: "remove", InputSchema: anyInput}, elicit)
				mcpsdk.Install(s, nil, mcpsdk.WithAwait(progress.Wait{Limit: tt.limit, ProgressLimit: tt.limit}))
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				host := time.AfterFunc(time.Minute, func() { cancel(errors.New("the host has given up")) })
				defer host.Stop()
				h, takenBack := new(heard), time.Duration(0)
				opts := person(h, 4*time.Minute, &takenBack)
				if tt.reset {
					opts.ProgressNotificationHandler = func(context.Context, *mcp.ProgressNotificationClientRequest) { host.Reset(time.Minute) }
				}
				cs := inMemory(protocol2025)(t, s, opts)
				p := &mcp.CallToolParams{Name: "remove"}
				p.SetProgressToken("t")
				res, err := cs.CallTool(ctx, p)
				if err != nil {
					t.Fatal(context.Cause(ctx))
				}
				if d := cmp.Diff(tt.want, texts(res)[0]); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// Without the sending half the idle check runs on, and without an execution there is nothing
// to hold.
func TestElicitationOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.AddTool(&mcp.Tool{Name: "remove", InputSchema: anyInput}, elicit)
		s.AddSendingMiddleware(mcpsdk.Middleware(nil))
		h, takenBack := new(heard), time.Duration(0)
		cs := inMemory(protocol2025)(t, s, person(h, time.Hour, &takenBack))
		if got := texts(call(t, cs, "remove", "t")); got[0] != "accept" {
			t.Error(got)
		}
	})
}
