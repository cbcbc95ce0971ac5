package mcpsdk_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.5: a client that reads nothing delays neither the tool nor its limits.
func TestStalledClient(t *testing.T) {
	for idle, want := range map[time.Duration]time.Duration{2 * time.Second: 100 * time.Second, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan timeout.Snapshot, 1)
			s := newTestServer()
			addTool(s, "work", func(ctx context.Context, _ func(float64, string)) error {
				for range 100 {
					heartbeat.Beat(ctx)
					if err := sleep(ctx, time.Second); err != nil {
						return err
					}
				}
				return nil
			})
			mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Idle: idle}, Interval: time.Second, Hooks: timeout.Hooks{
				Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s },
			}})
			in, out := sdktest.NewPipe(), sdktest.NewPipe()
			ss, err := s.Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(in), Writer: out}, nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			synctest.Wait()
			out.Stall()
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":1}}}`)
			if s := <-ended; s.Elapsed != want || (s.Err != nil) != (idle == time.Second) {
				t.Errorf("ended with %v after %v, want %v", s.Err, s.Elapsed, want)
			}
			// From here on the SDK waits for the client, on a mutex.
			_, _ = out.Close(), in.Close()
			_ = ss.Wait()
		})
	}
}
