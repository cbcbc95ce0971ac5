package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

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

// say says a status after a time.
func (s *script) say(after time.Duration, status string) {
	time.AfterFunc(after, func() {
		text := s.task(status)
		if other, ok := strings.CutPrefix(status, "other "); ok {
			text = strings.Replace(s.task(other), `"t"`, `"another"`, 1)
		}
		if status == "nonsense" {
			text = `{"taskId":1}`
		}
		n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
		n.Method = "notifications/tasks/status"
		_ = json.Unmarshal([]byte(text), &n.Params.AdditionalFields)
		s.notify(n)
	})
}

// SPEC 11.9: notifications are taken for polls where they come; where they do not, the server is asked at its
// interval, and before its ttl ends.
func TestFollowTasksStatus(t *testing.T) {
	const s = time.Second
	type said map[time.Duration]string
	for _, tc := range []struct {
		name  string
		takes time.Duration
		said  said
		ttl   string
		after time.Duration // the answer
		polls []time.Duration
		fails string
	}{
		{"nothing", 3 * s, nil, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"the end", 3 * s, said{3*s + 1: "completed"}, "null", 3*s + 1, nil, ""},
		{"a failure", 3 * s, said{3*s + 1: "failed"}, "null", 3*s + 1, nil, ""},
		{"all along", 25 * s, said{4 * s: "working", 8 * s: "working", 17 * s: "working", 25*s + 1: "completed"}, "null", 25*s + 1, nil, ""},
		{"too early", 3 * s, said{s: "completed"}, "null", 3 * s, nil, ""}, // its result is waited for
		{"and then nothing", 12 * s, said{4 * s: "working", 8 * s: "working"}, "null", 18 * s, []time.Duration{18 * s}, ""},
		{"of another task", 3 * s, said{3*s + 1: "other completed"}, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"nonsense", 3 * s, said{3*s + 1: "nonsense", 3*s + 2: "gone"}, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"somebody's cancel", 12 * s, said{3 * s: "cancelled"}, "null", 3 * s, nil, "the task was cancelled"},
		{"while the store is away", 3 * s, said{3*s + 1: "completed", 4 * s: "completed", 5 * s: "completed"}, "null", 13*s + 1, []time.Duration{13*s + 1}, ""},
		{"a ttl below the interval", 7*s - 1, nil, "8000", 7 * s, []time.Duration{4 * s, 6 * s, 7 * s}, ""},
		{"a ttl that is over", 15 * s, nil, "80", 20*s + 80*ms, []time.Duration{40 * ms, 60 * ms, 70 * ms, 80 * ms, 10*s + 80*ms, 20*s + 80*ms}, ""},
		{"a long ttl", 3 * s, nil, "60000", 10 * s, []time.Duration{10 * s}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{takes: tc.takes, ttl: tc.ttl, start: time.Now(), away: tc.name == "while the store is away"}
				tr := mcpgo.FollowTasks(sc)
				var heard atomic.Int32
				tr.SetNotificationHandler(func(mcp.JSONRPCNotification) { heard.Add(1) })
				send := func(method string, params any) *transport.JSONRPCResponse {
					resp, err := tr.SendRequest(t.Context(), transport.JSONRPCRequest{ID: mcp.NewRequestId(1), Method: method, Params: params})
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				send("initialize", nil)
				for after, status := range tc.said {
					sc.say(after, status)
				}
				resp := send("tools/call", map[string]any{"name": "build"})
				got := time.Since(sc.start)
				synctest.Wait()
				switch {
				case got != tc.after || resp.ID != mcp.NewRequestId(1):
					t.Errorf("%+v after %v", resp, got)
				case tc.fails != "" && (resp.Error == nil || resp.Error.Message != tc.fails), tc.fails == "" && string(resp.Result) != `{"content":[]}`:
					t.Errorf("%s, %+v", resp.Result, resp.Error)
				case int(heard.Load()) != len(tc.said): // by the client's own handlers as well
					t.Errorf("heard %d", heard.Load())
				}
				if d := cmp.Diff(tc.polls, sc.polls); d != "" {
					t.Errorf("polls: -want +got:\n%s", d)
				}
			})
		})
	}
}

// SPEC 11.9: servers with Install say how their tasks are, over stdio and on a listening client's stream.
func TestFollowTasksStatusOfAServer(t *testing.T) {
	t.Parallel()
	listening := func(t *testing.T, s *server.MCPServer) transport.Interface {
		ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
		t.Cleanup(ts.Close)
		t.Cleanup(ts.CloseClientConnections)
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		tr, err := transport.NewStreamableHTTP(ts.URL, transport.WithHTTPBasicClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}), transport.WithContinuousListening())
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	for _, l := range append(named("serve 2025"), link{"listening", false, listening}) {
		t.Run(l.name, func(t *testing.T) {
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t, task.WithPoll(time.Hour))))
			var polls atomic.Int32
			c := connect(t, mcpgo.FollowTasks(polled(t, l.open(t, s.MCPServer), func() { polls.Add(1) })), false)
			go func() {
				<-s.started
				time.Sleep(6 * time.Second) // it says nothing before the client has the handle
				s.release <- true
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 2*slack) // the first poll is after a minute
			defer cancel()
			res, err := c.CallTool(ctx, call{tool: "now"}.request())
			if err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) || polls.Load() != 0 {
				t.Errorf("%v %v after %d polls", res, err, polls.Load())
			}
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
