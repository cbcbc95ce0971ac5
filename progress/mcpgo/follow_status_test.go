package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A script is a server with one task, which ends at a given time.
type script struct {
	fake
	start time.Time
	takes time.Duration
	ttl   string
	away  bool // the first tasks/result is answered by a server whose store is

	mu    sync.Mutex
	polls []time.Duration // when
}

func (s *script) task(status string) string {
	return fmt.Sprintf(`{"taskId":"t","status":%q,"createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":%s,"pollInterval":10000}`, status, s.ttl)
}

func (s *script) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	left := s.takes - time.Since(s.start)
	var result string
	switch r.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}`
	case "tools/list":
		result = `{"tools":[{"name":"build","execution":{"taskSupport":"optional"}}]}`
	case "tools/call":
		result = `{"task":` + s.task("working") + `}`
	case "tasks/get":
		s.mu.Lock()
		s.polls = append(s.polls, time.Since(s.start))
		s.mu.Unlock()
		if result = s.task("working"); left <= 0 {
			result = s.task("completed")
		}
	case "tasks/result":
		if s.away {
			s.away = false
			return transport.NewJSONRPCErrorResponse(r.ID, mcp.INTERNAL_ERROR, "no store", nil), nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		result = `{"content":[]}`
	default:
		result = `{}`
	}
	return &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: r.ID, Result: json.RawMessage(result)}, nil
}

// SPEC 11.9: servers with Install say how their tasks are, over stdio and on a listening client's stream.
func TestFollowTasksStatusOfAServer(t *testing.T) {
	for _, listening := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tasks := &task.Tasks{Poll: time.Hour}
			defer tasks.Close()
			s := newSDKServer(sdktest.Config{Tasks: tasks, Policy: &policy.Policy{Tools: map[string]policy.Tool{"build": {Soft: -1}}}, Tools: map[string]sdktest.Tool{
				"build": {Run: func(context.Context, *sdktest.Call) (*sdktest.Result, error) {
					time.Sleep(6 * time.Second)
					return sdktest.Text("done"), nil
				}}}})
			in, out := sdktest.NewPipe(), sdktest.NewPipe()
			var tr transport.Interface = transport.NewIO(out, in, io.NopCloser(nil))
			if listening {
				//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
				tr = overNet(t, s.HTTP(false), transport.WithContinuousListening())
			} else {
				go func() { _ = s.Serve(t.Context(), in, out, 0) }()
			}
			c := connect(t, mcpgo.FollowTasks(tr), false)
			begun := time.Now()
			res, err := c.CallTool(t.Context(), call{tool: "build"}.request())
			if took := time.Since(begun); err != nil || !cmp.Equal([]string{"done"}, view(t, res).Texts) || took > 7*time.Second { // the first poll is after a minute
				t.Errorf("%v %v after %v", res, err, took)
			}
			_, _ = in.Close(), out.Close()
			_ = c.Close()
			s.Close()
			time.Sleep(time.Hour)
		})
	}
}

// slowCancel answers a tasks/cancel after a while.
type slowCancel struct {
	*script
	takes    time.Duration
	answered atomic.Bool
}

func (s *slowCancel) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == "tasks/cancel" {
		select {
		case <-time.After(s.takes):
			s.answered.Store(true)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.script.SendRequest(ctx, r)
}

// SPEC 11.5: a program that gives up and ends has cancelled the task, if the server takes the request soon.
func TestFollowTasksWaitsForCancel(t *testing.T) {
	for _, tc := range []struct {
		name        string
		takes, want time.Duration
		answered    bool
	}{
		{"at once", 0, time.Second, true},
		{"soon", 200*ms - 1, 1200*ms - 1, true},
		{"too late", time.Second, 1200 * ms, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &slowCancel{script: &script{takes: time.Minute, ttl: "null", start: time.Now()}, takes: tc.takes}
				tr := mcpgo.FollowTasks(sc)
				if _, err := tr.SendRequest(t.Context(), transport.JSONRPCRequest{ID: mcp.NewRequestId(1), Method: "initialize"}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := tr.SendRequest(ctx, transport.JSONRPCRequest{ID: mcp.NewRequestId(2), Method: "tools/call", Params: map[string]any{"name": "build"}})
				if got, answered := time.Since(sc.start), sc.answered.Load(); !errors.Is(err, context.DeadlineExceeded) || got != tc.want || answered != tc.answered {
					t.Errorf("%v after %v, answered: %v", err, got, answered)
				}
				time.Sleep(time.Minute) // it is sent on
				if !sc.answered.Load() {
					t.Error("the server was never told")
				}
			})
		})
	}
}
