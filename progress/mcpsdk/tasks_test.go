package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/internal/gateway"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A taskServer has a tool that becomes a task, and ends when it is told to.
type taskServer struct {
	*mcp.Server
	tasks *task.Tasks
	gate  chan struct{}
}

func newTaskServer(t testing.TB, tasks *task.Tasks) *taskServer {
	s := &taskServer{newTestServer(), tasks, make(chan struct{}, 1)}
	addTool(s.Server, "gated", func(ctx context.Context, _ func(float64, string)) error {
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		select {
		case <-s.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	addTool(s.Server, "refuses", func(ctx context.Context, _ func(float64, string)) error {
		return errors.Join(sdktest.Sleep(ctx, time.Second), &jsonrpc.Error{Code: -32042, Message: "not like this"})
	})
	now := policy.Tool{Limits: &timeout.Config{Total: time.Hour, Idle: 30 * time.Second}, Soft: 30 * ms}
	mcpsdk.Install(s.Server, &mcpsdk.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"gated": now, "refuses": now, "steps": now}}, Tasks: s.tasks, Interval: 5 * ms})
	t.Cleanup(func() { _ = s.tasks.Close() })
	return s
}

// over is the way to the server over HTTP.
func (s *taskServer) over(t testing.TB, o mcp.StreamableHTTPOptions) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: overNet(t, mcpsdk.WrapHTTP(streamable(t, s.Server, &o))), MaxRetries: -1}
}

func following(t testing.TB, transport mcp.Transport, version string) *mcp.ClientSession {
	c := newTestClient(nil)
	mcpsdk.Limit(c, &request.Options{FollowTasks: true})
	return connectTo(t, c, mcpsdk.WrapClientTransport(transport), version)
}

// SPEC 11.2: a JSON-RPC error of a tool is that of the call, with its code, as a task, too.
func TestProtocolErrorOfATask(t *testing.T) {
	for _, version := range protocols {
		synctest.Test(t, func(t *testing.T) {
			s := newTaskServer(t, &task.Tasks{Poll: 20 * ms})
			cs := following(t, s.over(t, mcp.StreamableHTTPOptions{Stateless: version == protocol2026}), version)
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "refuses"})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != -32042 || !strings.Contains(wire.Message, "not like this") {
				t.Error(err)
			}
		})
	}
}

// SPEC 11.3: a task is that of the principal that the context of the request says, and of no other.
func TestPrincipal(t *testing.T) {
	type who struct{}
	tasks := new(task.Tasks)
	defer tasks.Close()
	s := newTestServer()
	addTool(s, "now", func(context.Context, func(float64, string)) error { return nil })
	mcpsdk.Install(s, &mcpsdk.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"now": {Soft: -1}}}, Tasks: tasks, Principal: func(ctx context.Context) string {
		name, _ := ctx.Value(who{}).(string)
		return name
	}})
	h := mcpsdk.WrapHTTP(streamable(t, s, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	as := func(name, method, params string) string {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {sdktest.Old}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), who{}, name)))
		return w.Body.String()
	}
	var m struct {
		Result struct{ Task struct{ TaskID string } }
	}
	body := as("alice", "tools/call", `{"name":"now","task":{}}`)
	if _ = json.Unmarshal([]byte(body), &m); m.Result.Task.TaskID == "" {
		t.Fatal(body)
	}
	for name, knows := range map[string]bool{"alice": true, "bob": false, "": false} {
		if got := as(name, "tasks/get", `{"taskId":"`+m.Result.Task.TaskID+`"}`); strings.Contains(got, `"status"`) != knows {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// A decliner is a person who is asked to authorize a client, and does not.
type decliner struct {
	auth.AuthorizationCodeHandler
	asked int
}

func (d *decliner) Authorize(context.Context, *http.Request, *http.Response) error {
	d.asked++
	return errors.New("declined")
}

// SPEC 11.10: a request that is not authorized ends the call at once, and nobody is asked twice.
func TestFollowTasksUnauthorized(t *testing.T) {
	for _, code := range []int{401, 403} {
		synctest.Test(t, func(t *testing.T) {
			s := newTaskServer(t, &task.Tasks{Poll: 20 * ms})
			g := gateway.New(gateway.Status(code), map[string]int{"tasks/get": 1 << 30})
			g.Next = mcpsdk.WrapHTTP(streamable(t, s.Server, &mcp.StreamableHTTPOptions{Stateless: true}))
			person := new(decliner)
			cs := following(t, &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: overNet(t, g), MaxRetries: -1, OAuthHandler: person}, protocol2026)
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"}); err == nil || !strings.Contains(err.Error(), "declined") || person.asked != 1 {
				t.Errorf("%d: %v, asked %d times", code, err, person.asked)
			}
		})
	}
}

// A spy tells the ids of tasks.
type spy struct {
	task.Store
	ids chan string
}

func (s *spy) Create(ctx context.Context, r task.Record) (task.Record, error) {
	r, err := s.Store.Create(ctx, r)
	s.ids <- r.ID
	return r, err
}

// SPEC 11.9: over HTTP the status of a task comes on the stream of notifications.
func TestFollowTasksStatusOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := make(chan string, 1)
		s := newTaskServer(t, &task.Tasks{Poll: time.Hour, Store: &spy{task.NewMemory(0, 0), ids}})
		h := mcpsdk.WrapHTTP(streamable(t, s.Server, nil))
		client := overNet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				h.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if _ = http.NewResponseController(w).Flush(); sdktest.Sleep(r.Context(), 10*time.Second) == nil {
				s.gate <- struct{}{}
				fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":%q,"status":"completed","ttl":null,"pollInterval":10000}}`+"\n\n", <-ids)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}))
		cs := following(t, &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: client, MaxRetries: -1}, protocol2025)
		begun := time.Now()
		if res := call(t, cs, "gated", nil); texts(res)[0] != "done" || time.Since(begun) > 11*time.Second {
			t.Errorf("%v after %v", texts(res), time.Since(begun))
		}
	})
}

// SPEC 11.1, 11.6: a typed Handler under Install becomes a task as any tool does. Its structured output is the task's, and
// the stop by limits of its own as well.
func TestTypedHandlerAsTask(t *testing.T) {
	for _, version := range protocols {
		synctest.Test(t, func(t *testing.T) {
			s := newTaskServer(t, &task.Tasks{Poll: 20 * ms})
			mcp.AddTool(s.Server, &mcp.Tool{Name: "steps"}, mcpsdk.Handler(func(ctx context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, found, error) {
				if progress.Report(ctx, progress.Update{Progress: 1, Total: 2, Message: "a.go"}); in.Mode == "hang" {
					<-ctx.Done()
				}
				return nil, partial, sdktest.Sleep(context.WithoutCancel(ctx), time.Second)
			}, &mcpsdk.Options{Limits: &timeout.Config{Idle: 3 * time.Second}}))
			cs := following(t, s.over(t, mcp.StreamableHTTPOptions{Stateless: version == protocol2026}), version)
			for mode, want := range map[string][]string{
				"":     {partialJSON},
				"hang": {"No progress for 3s (idle timeout). Tool should call heartbeat() during long work.\nlast: a.go 1 of 2", partialJSON},
			} {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "steps", Arguments: query{mode}})
				if err != nil {
					t.Fatal(err)
				}
				structured, _ := json.Marshal(res.StructuredContent)
				if d := cmp.Diff(want, texts(res)); d != "" || string(structured) != partialJSON || res.IsError != (mode == "hang") {
					t.Errorf("%s: %s %s", version, structured, d)
				}
			}
		})
	}
}

// listing calls tools/list n times with a client without limits that follows tasks, and returns how many more bytes are
// then in use.
func listing(t *testing.T, s *mcp.Server, n int) (more int64) {
	c, o := newTestClient(nil), unlimited()
	o.FollowTasks = true
	mcpsdk.Limit(c, o)
	near, far := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), mcpsdk.WrapTransport(far), nil)
	if err != nil {
		t.Fatal(err)
	}
	cs := connectTo(t, c, mcpsdk.WrapClientTransport(near), protocol2025)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if _, err := cs.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	_ = cs.Close()
	_ = ss.Wait()
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// SPEC 3.15: a client without limits keeps nothing of a list of tools that it has received.
func TestFollowTasksKeepsNoLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTaskServer(t, new(task.Tasks))
		s.AddTool(&mcp.Tool{Name: "long", Description: strings.Repeat("x", 1<<20), InputSchema: anyInput}, nil)
		const lists = 20
		if more := listing(t, s.Server, lists); more > lists<<20/2 {
			t.Errorf("%d bytes more after %d lists of 1 MiB", more, lists)
		}
	})
}

// SPEC 3.15: a server that lists other tools each time does not fill the memory of a client that follows tasks.
func TestFollowTasksForgetsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lists, tasks := newTestServer(), 0, new(task.Tasks)
		defer tasks.Close()
		addHang(s, "tool")
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				res, err := next(ctx, method, req)
				if list, ok := res.(*mcp.ListToolsResult); ok {
					lists++
					for i := range 1000 {
						list.Tools = append(list.Tools, &mcp.Tool{Name: fmt.Sprint(lists, i, strings.Repeat("x", 1<<10)), InputSchema: anyInput})
					}
				}
				return res, err
			}
		})
		mcpsdk.Install(s, &mcpsdk.Options{Tasks: tasks})
		if more := listing(t, s, 40); more > 25<<20 {
			t.Errorf("%d bytes more after %d names of 1 KiB", more, 40*1000)
		}
	})
}

// Without the wrapper, and with a server of 2025-11-25 that does not see a request for a task, nothing is asked for, and
// calls are plain. What the caller passes is not changed, but by the SDK.
func TestFollowTasksNotWrapped(t *testing.T) {
	for _, version := range protocols {
		synctest.Test(t, func(t *testing.T) {
			s := newTaskServer(t, &task.Tasks{Poll: 20 * ms})
			c := newTestClient(nil)
			mcpsdk.Limit(c, &request.Options{FollowTasks: true})
			near, far := mcp.NewInMemoryTransports()
			ss, err := s.Connect(t.Context(), far, nil)
			if err != nil {
				t.Fatal(err)
			}
			transport := mcp.Transport(near)
			if version == protocol2025 {
				transport = mcpsdk.WrapClientTransport(near)
			}
			cs := connectTo(t, c, transport, version)
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Error(err)
			}
			p := &mcp.CallToolParams{Name: "gated", Arguments: map[string]any{"a": 1}, Meta: mcp.Meta{"own": "kept"}}
			time.AfterFunc(time.Second, func() { s.gate <- struct{}{} })
			res, err := cs.CallTool(t.Context(), p)
			if err != nil || texts(res)[0] != "done" {
				t.Errorf("%+v, %v", res, err)
			}
			if d := cmp.Diff(map[string]any{"a": 1}, p.Arguments); d != "" || p.InputResponses != nil || p.Meta["own"] != "kept" || p.Name != "gated" {
				t.Errorf("%+v", p)
			}
			_ = cs.Close()
			_ = ss.Wait()
		})
	}
}

// SPEC 11.2: tasks are offered only where the server sees that a call asks for one, and only with the option.
func TestTasksNotOffered(t *testing.T) {
	for name, o := range map[string]*mcpsdk.Options{"not wrapped": {Tasks: new(task.Tasks)}, "continuations": {Continuation: new(mcpsdk.Continuation)}} {
		sdktest.Bubble(t, name, func(t *testing.T) {
			s := newTestServer()
			addHang(s, "tool")
			o.Policy = &policy.Policy{Tools: map[string]policy.Tool{"tool": {Soft: time.Second}}}
			mcpsdk.Install(s, o)
			near, far := mcp.NewInMemoryTransports()
			ss, err := s.Connect(t.Context(), far, nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := near.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
			for i, request := range []string{
				`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`,
				`"method":"tools/list","params":{}`, `"method":"server/discover","params":{` + modern + `}`,
			} {
				msg, err := jsonrpc.DecodeMessage(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, i, request))
				if err == nil {
					err = conn.Write(t.Context(), msg)
				}
				if err != nil {
					t.Fatal(err)
				}
				answer, err := conn.Read(t.Context())
				res, _ := answer.(*jsonrpc.Response)
				if err != nil || res == nil || res.Error != nil {
					t.Fatalf("%s: %+v, %v", request, answer, err)
				}
				result := string(res.Result)
				offered := strings.Contains(result, `"tasks":`) || strings.Contains(result, "taskSupport") || strings.Contains(result, task.ExtensionID)
				if offered != (name == "not wrapped" && i == 2) { // from 2026-07-28 on the server decides
					t.Errorf("%s: %s", request, result)
				}
			}
			_ = conn.Close()
			_ = ss.Wait()
		})
	}
}
