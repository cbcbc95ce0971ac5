package mcpgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.5: what only reads is sent again, under a new id; a call of a tool is not.
func TestRetry(t *testing.T) {
	for _, tc := range []struct {
		name, method string
		answer       func(ctx context.Context, n int) error
		tries        int
		err          error
	}{
		{"third time", "tools/list", func(ctx context.Context, n int) error {
			if n < 3 {
				<-ctx.Done()
			}
			return ctx.Err()
		}, 3, nil},
		{"never", "resources/read", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, 4, context.DeadlineExceeded},
		{"another error", "tools/list", func(context.Context, int) error { return errGone }, 1, errGone},
		{"not named", "prompts/list", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, 1, context.DeadlineExceeded},
		{"a tool", "tools/call", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, 1, context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: tc.answer, notes: make(chan mcp.JSONRPCNotification, 10)}
				r := mcpgo.Retry(mcpgo.Limit(f, mcpgo.ClientLimits{Timeout: 30 * ms}, nil), request.Backoff{First: ms}, "tools/*", "resources/read")
				_, err := r.SendRequest(t.Context(), transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(1)), Method: tc.method})
				if !errors.Is(err, tc.err) || len(f.sent) != tc.tries {
					t.Errorf("%d tries, %v", len(f.sent), err)
				}
				ids := make(map[string]bool)
				for _, s := range f.sent {
					ids[s.ID.String()] = true
				}
				if len(ids) != tc.tries {
					t.Errorf("ids %v", ids)
				}
				synctest.Wait()
			})
		})
	}
}

// SPEC 3.11: the caller's end is final, and is the same in a try and between two.
func TestRetryEnds(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		after time.Duration
		tries int
		cause error // nil: a deadline
		exit  int
	}{
		{"in the first try", 5 * s, 1, errGone, timeout.ExitAborted},
		{"between two", 11 * s, 1, errGone, timeout.ExitAborted},
		{"in the second try", 13 * s, 2, errGone, timeout.ExitAborted},
		{"by deadline, in a try", 5 * s, 1, nil, timeout.ExitTimeout},
		{"by deadline, between two", 11 * s, 1, nil, timeout.ExitTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, notes: make(chan mcp.JSONRPCNotification, 10)}
				r := mcpgo.Retry(mcpgo.Limit(f, mcpgo.ClientLimits{Timeout: 10 * s}, nil), request.Backoff{}, "*")
				ctx, cancel := context.WithTimeout(t.Context(), tc.after)
				defer cancel()
				is, isNot := context.DeadlineExceeded, context.Canceled
				if tc.cause != nil {
					var abort context.CancelCauseFunc
					ctx, abort = context.WithCancelCause(t.Context())
					time.AfterFunc(tc.after, func() { abort(tc.cause) })
					is, isNot = isNot, is
				}
				start := time.Now()
				_, err := r.SendRequest(ctx, transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(1)), Method: "tools/list"})
				if !errors.Is(err, is) || errors.Is(err, isNot) || tc.cause != nil && !errors.Is(err, tc.cause) || timeout.ExitCode(err) != tc.exit {
					t.Errorf("%v", err)
				}
				if len(f.sent) != tc.tries || time.Since(start) != tc.after {
					t.Errorf("%d tries in %v, want %d in %v", len(f.sent), time.Since(start), tc.tries, tc.after)
				}
				synctest.Wait()
			})
		})
	}
}
