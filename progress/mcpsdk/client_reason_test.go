package mcpsdk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

var errStop = errors.New("the user pressed Stop")

// SPEC 8.6: a caller that gives up without a limit gets exactly the error that it would get without Limit.
func TestNoLimits(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			_, transport := serveRaw(t, func(w *rawServer, req *jsonrpc.Request) {
				if req.Method == "initialize" {
					w.initialize(req)
				}
			})
			c := newTestClient(nil)
			mcpsdk.Limit(c, mcpsdk.ClientLimits{}, nil)
			cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if want == context.Canceled {
				time.AfterFunc(time.Second/2, cancel)
			}
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "work"}); err != want {
				t.Errorf("%v, want %v", err, want)
			}
			synctest.Wait()
		})
	}
}
