package mcpsdk_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.10: what a client logs names the tool and the server, and its advice is for the author of the client.
func TestClientLog(t *testing.T) {
	for _, version := range protocols {
		for name, tc := range map[string]struct {
			limits mcpsdk.ClientLimits
			abort  time.Duration
			want   string
		}{
			"idle":  {mcpsdk.ClientLimits{Timeout: time.Second}, 0, `error.message="No progress for 1s (idle timeout). The server has sent neither an answer nor progress: raise the client's limit, or let progress renew it."`},
			"total": {mcpsdk.ClientLimits{MaxTotal: time.Second}, 0, `error.message="Request exceeded wall-clock limit of 1s. If the server may take longer, raise the client's limit."`},
			"abort": {mcpsdk.ClientLimits{Timeout: time.Hour}, time.Second, `msg="tool was aborted" tool=build`},
		} {
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					s := newTestServer()
					addHang(s, "build")
					c := newTestClient(nil)
					mcpsdk.Limit(c, mcpsdk.ClientLimits{}, map[string]mcpsdk.ClientLimits{"tools/call": tc.limits},
						mcpsdk.WithRequestOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
					cs := connectClient(t, c, s, version)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if tc.abort > 0 {
						time.AfterFunc(tc.abort, cancel)
					}
					if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "build"}); err == nil {
						t.Error("no error")
					}
					synctest.Wait()
					for _, want := range []string{"tool=build method=tools/call server=server ", tc.want} {
						if !strings.Contains(log.String(), want) {
							t.Errorf("%s\nwant %s", log.String(), want)
						}
					}
					if strings.Contains(log.String(), "heartbeat()") {
						t.Error(log.String())
					}
				})
			})
		}
	}
}
