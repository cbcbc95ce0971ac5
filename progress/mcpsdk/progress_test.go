package mcpsdk_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 7.1, 7.2, 7.3: the first update goes out at once, then the newest every 10 s and at the end; progress
// increases although the tool repeats itself; without a token there is nothing.
func TestProgressReachesTheClient(t *testing.T) {
	for _, tt := range []struct {
		name     string
		token    any
		interval []mcpsdk.InstallOption
		want     []string // time, message
	}{
		{"every 10 s", "t", nil, []string{"0s step 0", "10s step 10", "20s step 20", "26s step 25"}},
		{"every 4 s", "t", []mcpsdk.InstallOption{mcpsdk.WithInterval(4 * time.Second)},
			[]string{"0s step 0", "4s step 4", "8s step 8", "12s step 12", "16s step 16", "20s step 20", "24s step 24", "26s step 25"}},
		{"no token", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.AddTool(&mcp.Tool{Name: "count", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					for i := range 26 {
						progress.Report(ctx, progress.Update{Progress: float64(i / 15), Total: 25, Message: fmt.Sprint("step ", i)})
						time.Sleep(time.Second)
					}
					return textResult("done"), nil
				})
				mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Idle: 2 * time.Second}}, tt.interval...)
				start := time.Now()
				var got []string
				h := new(heard)
				opts := h.options()
				record := opts.ProgressNotificationHandler
				opts.ProgressNotificationHandler = func(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
					record(ctx, req)
					// The beat and the notification that falls due at the same instant race.
					got = append(got, fmt.Sprint(time.Since(start).Round(time.Second), " ", req.Params.Message))
				}
				cs := inMemory(protocol2025)(t, s, opts)
				if res := call(t, cs, "count", tt.token); res.IsError {
					t.Fatal(texts(res))
				}
				synctest.Wait()
				all := h.list()
				increases(t, all)
				if len(got) != len(tt.want) {
					t.Fatalf("got %q, want %q", got, tt.want)
				}
				for i, n := range all {
					if n.ProgressToken != tt.token || n.Total != 25 {
						t.Errorf("token %v and total %v, want %v and 25", n.ProgressToken, n.Total, tt.token)
					}
					at, want := got[i], tt.want[i]
					if at[:3] != want[:3] {
						t.Errorf("got %q, want %q", at, want)
					}
				}
			})
		})
	}
}

// SPEC 7.6: a tool that does not beat sends nothing, and one that only beats fakes no work.
func TestSilenceStaysVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.AddTool(&mcp.Tool{Name: "once", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(time.Minute)
			heartbeat.Beat(ctx)
			time.Sleep(time.Minute)
			return textResult("done"), nil
		})
		mcpsdk.Install(s, nil)
		h := new(heard)
		cs := inMemory(protocol2026)(t, s, h.options())
		call(t, cs, "once", "t")
		synctest.Wait()
		want := []mcp.ProgressNotificationParams{{ProgressToken: "t"}}
		if d := cmp.Diff(want, h.list()); d != "" {
			t.Error(d)
		}
	})
}

// SPEC 7.1, 7.2: hundreds of calls at once in one session, each with the progress of its own
// token and no other's.
func TestManyCalls(t *testing.T) {
	const n = 300
	s := newServer()
	var running atomic.Int64
	all, heardAll := make(chan struct{}), make(chan struct{})
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if running.Add(1) == n {
			close(all)
		}
		<-all
		token := req.Params.GetProgressToken().(string)
		for i := range 3 {
			progress.Report(ctx, progress.Update{Progress: float64(i), Message: token})
		}
		<-heardAll
		return textResult(token), nil
	})
	mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}})
	var mu sync.Mutex
	heard := make(map[string]int)
	cs := inMemory(protocol2025)(t, s, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			token := req.Params.ProgressToken.(string)
			if heard[token]++; len(heard) == n && heard[token] == 1 {
				close(heardAll)
			}
			if req.Params.Message != token {
				t.Errorf("token %q has the message of %q", token, req.Params.Message)
			}
		},
	})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			token := fmt.Sprint("token-", i)
			p := &mcp.CallToolParams{Name: "echo"}
			p.SetProgressToken(token)
			res, err := cs.CallTool(context.Background(), p)
			if err != nil || res.IsError {
				t.Errorf("%s: %v %v", token, err, res)
				return
			}
			if got := texts(res); got[0] != token {
				t.Errorf("%s: got %q", token, got)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	for token, times := range heard {
		if times < 1 || times > 2 { // the interval is 10 s, and the last may go out at the end
			t.Errorf("%s: %d notifications", token, times)
		}
	}
}
