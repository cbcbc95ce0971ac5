package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// requestTimeout checks what SPEC 8.2 says of the error of a timeout.
func requestTimeout(t *testing.T, err error, method string) *timeout.Error {
	t.Helper()
	var wire *mcpgo.RequestTimeout
	if !errors.As(err, &wire) || wire.Details.Code != -32001 || !wire.Timeout() {
		t.Fatalf("%T %v: want a *RequestTimeout with code -32001", err, err)
	}
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v: want a *timeout.Error of %s, got %+v", err, method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || !errors.Is(err, mcp.ErrRequestInterrupted) {
		t.Errorf("%v: want context.DeadlineExceeded and mcp.ErrRequestInterrupted, not context.Canceled", err)
	}
	return e
}

// SPEC 8.2, 3.11, 3.23: a request that times out, or is cancelled, stops the tool, over every
// transport. Over HTTP mcp-go's client hangs up, which is how clients of 2026-07-28 cancel. In a
// session a message with the reason goes out beside that, and what comes first is the cause.
//
// The limit fires when the tool has begun. mcp-go drops a cancellation that overtakes its request, which
// can happen over SSE and stdio; under Serve it cannot, see TestCancelledBeforeAWorker.
func TestRequestStopsTheTool(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled=", cancelled), func(t *testing.T) {
			each(t, links, func(t *testing.T, l link) {
				s, started, ended := watched()
				now := clock.NewMock()
				c := connect(t, mcpgo.Limit(l.open(t, s), mcpgo.ClientLimits{}, map[string]mcpgo.ClientLimits{"tools/*": {Timeout: time.Minute}},
					mcpgo.WithRequestOptions(timeout.WithClock(now))), l.modern)
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				errs := make(chan error, 1)
				go func() {
					_, err := c.CallTool(ctx, call{tool: "wait"}.request())
					errs <- err
				}()
				within(t, started, "the start")
				if cancelled {
					cancel(errOwn)
				} else {
					now.Add(time.Minute)
				}
				err := within(t, errs, "the end of the request")
				if cancelled {
					if !errors.Is(err, context.Canceled) || !errors.Is(err, errOwn) || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
				} else {
					requestTimeout(t, err, "tools/call")
				}
				said := "client_timeout"
				if cancelled {
					said = "client"
				}
				causes := []string{""}
				switch {
				case strings.HasPrefix(l.name, "serve"):
					causes = []string{said}
				case l.name == "wrapped 2026", l.name == "wrapped 2025 stateless":
					causes = []string{"disconnected"}
				case strings.HasPrefix(l.name, "wrapped"):
					causes = []string{said, "disconnected"} // the first of two requests
				}
				aborted(t, within(t, ended, "the end of the tool"), causes...)
			})
		})
	}
}
