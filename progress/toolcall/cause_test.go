package toolcall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.23: each cause has one word, which is in the outcome, and the client's words are beside it.
func TestCause(t *testing.T) {
	for name, tc := range map[string]struct {
		cause        error
		want, reason string
	}{
		"TypeScript's timeout": {&toolcall.CancelledError{Reason: "McpError: MCP error -32001: Request timed out"}, "client_timeout", "McpError: MCP error -32001: Request timed out"},
		"Go's deadline":        {&toolcall.CancelledError{Reason: "context deadline exceeded"}, "client_timeout", "context deadline exceeded"},
		"a user's timeout":     {&toolcall.CancelledError{Reason: "timeout set by the user"}, "client_timeout", "timeout set by the user"},
		"a user":               {&toolcall.CancelledError{Reason: "User requested cancellation"}, "person", "User requested cancellation"},
		"nobody knows who":     {&toolcall.CancelledError{Reason: "AbortError"}, "client", "AbortError"},
		"a browser's words":    {&toolcall.CancelledError{Reason: "AbortError: The user aborted a request."}, "client", "AbortError: The user aborted a request."},
		"no words":             {new(toolcall.CancelledError), "client", ""},
		"too many words":       {&toolcall.CancelledError{Reason: strings.Repeat("x", 201)}, "client", strings.Repeat("x", 200) + "..."},
		"disconnected":         {toolcall.ErrDisconnected, "disconnected", ""},
		"session ended":        {fmt.Errorf("here: %w", toolcall.ErrSessionEnded), "session_ended", ""},
		"shutdown":             {toolcall.ErrShutdown, "shutdown", ""},
		"something else":       {errors.New("the caller's"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (int, error) {
				cancel(tc.cause)
				<-ctx.Done()
				return 0, toolcall.ErrShutdown // what a tool returns does not count
			})
			var stop *timeout.Error
			if !errors.As(err, &stop) || stop.Cause != tc.cause {
				t.Fatalf("got %v, want the cause %v", err, tc.cause)
			}
			outcome, _ := toolcall.OutcomeOf(err)
			if diff := cmp.Diff([]string{tc.want, tc.want, tc.reason}, []string{toolcall.CauseOf(err), outcome.Cause, outcome.Reason}); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := toolcall.CauseOf(&timeout.Error{Kind: timeout.ErrTotal, Cause: toolcall.ErrShutdown}); got != "" {
		t.Errorf("a limit has the cause %q", got)
	}
}
