package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// taskWays are the ways on which a client gets a task in both protocols.
var taskWays = []sdktest.Way{sdktest.Ways[0], sdktest.Ways[1], sdktest.Ways[2], sdktest.Ways[4], sdktest.Ways[5]}

// inWays runs a test with a peer of a server with tasks, in a bubble for each way.
func inWays(t *testing.T, s func(*task.Tasks) *sdkServer, test func(t *testing.T, p *sdktest.Peer)) {
	for _, w := range taskWays {
		sdktest.Bubble(t, w.Name, func(t *testing.T) {
			tasks := new(task.Tasks)
			p := sdktest.Dial(t, s(tasks), w)
			test(t, p)
			_ = tasks.Close()
		})
	}
}

func taskConfig(tasks *task.Tasks, run func(ctx context.Context, c *sdktest.Call) (*sdktest.Result, error)) sdktest.Config {
	return sdktest.Config{Tasks: tasks, Policy: &policy.Policy{Tools: map[string]policy.Tool{"now": {Soft: -1}, "only": {TaskOnly: true}}},
		Tools: map[string]sdktest.Tool{"now": {Run: run}, "only": {Run: run}, "plain": {Run: run}}}
}

func slowly(ctx context.Context, _ *sdktest.Call) (*sdktest.Result, error) {
	time.Sleep(time.Minute)
	return sdktest.Text("done"), nil
}

// Without Serve or WrapHTTP nothing is declared, and calls are plain.
func TestNoTasksWithoutTheWire(t *testing.T) {
	for _, modern := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tasks := new(task.Tasks)
			defer tasks.Close()
			config := taskConfig(tasks, slowly)
			config.Declared = true
			c := connect(t, mcpgo.Limit(overNet(t, server.NewStreamableHTTPServer(newSDKServer(config).MCPServer)), following()), modern)
			if got := c.GetServerCapabilities(); got.Tasks != nil || len(got.Extensions) > 1 || got.Extensions[policy.DeclarationKey] == nil {
				t.Errorf("%+v", got)
			}
			tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil || len(tools.Tools) != 3 {
				t.Fatal(tools, err)
			}
			for _, tool := range tools.Tools {
				limits, _ := tool.Meta.AdditionalFields[policy.DeclarationKey].(map[string]any)
				if tool.Execution != nil || limits["totalMs"] == nil || limits["softMs"] != nil {
					t.Errorf("%s: %+v, %v", tool.Name, tool.Execution, limits)
				}
			}
			if res, err := callTool(t.Context(), c, "now", nil); err != nil || view(t, res).Texts[0] != "done" {
				t.Errorf("%v %v", res, err)
			}
			if _, err := callTool(t.Context(), c, "only", nil); err == nil {
				t.Error("a tool that is only a task was called")
			}
		})
	}
}

// SPEC 11.3: a task is its principal's, in any session.
func TestPrincipal(t *testing.T) {
	type who struct{}
	tasks := new(task.Tasks)
	defer tasks.Close()
	m := newSDKServer(sdktest.Config{})
	mcpgo.Install(m.MCPServer, &mcpgo.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"now": {Soft: -1}}}, Tasks: tasks, Principal: func(ctx context.Context) string {
		name, _ := ctx.Value(who{}).(string)
		return name
	}})
	m.AddTool(mcp.NewTool("now"), silent)
	h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(m.MCPServer, server.WithHTTPContextFunc(func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, who{}, r.Header.Get("Who"))
	})))
	as := func(name, session, method, params string) message {
		return answerOf(t, post(h, sdktest.Old, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "Who", name, "Mcp-Session-Id", session))
	}
	var handle struct{ Task struct{ TaskID string } }
	_ = json.Unmarshal(as("alice", session, "tools/call", `{"name":"now","task":{}}`).Result, &handle)
	other := session[:len(session)-1] + "9"
	for _, tc := range []struct {
		name, session string
		knows         bool
	}{{"alice", session, true}, {"alice", other, true}, {"bob", session, false}, {"", session, false}, {"", other, false}} {
		m := as(tc.name, tc.session, "tasks/get", `{"taskId":"`+handle.Task.TaskID+`"}`)
		if knows := strings.Contains(string(m.Result), handle.Task.TaskID); handle.Task.TaskID == "" || knows != tc.knows {
			t.Errorf("%q in %s: %s %s", tc.name, tc.session, m.Result, m.Error)
		}
	}
	if m := as("bob", session, "tasks/cancel", `{"taskId":"`+handle.Task.TaskID+`"}`); m.Error == nil {
		t.Error("another's task was cancelled")
	}
}

// answerOf is the answer in a response.
func answerOf(t *testing.T, r *http.Response) (m message) {
	t.Helper()
	for m = range messagesOf(t, r) {
	}
	if m.ID == nil {
		t.Fatal(r.Status)
	}
	return m
}

// messagesOf are the messages in a response, as they come.
func messagesOf(t *testing.T, r *http.Response) iter.Seq[message] {
	return func(yield func(message) bool) {
		sc := bufio.NewScanner(r.Body)
		for sc.Buffer(nil, 1<<26); sc.Scan(); {
			if data := strings.TrimPrefix(sc.Text(), "data: "); strings.HasPrefix(data, "{") {
				var m message
				if err := json.Unmarshal([]byte(data), &m); err != nil {
					t.Fatal(err)
				}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// A status message of a task whose handle is still on its way does not take the handle's place. What a tool says cannot
// pass for an answer of ours either.
func TestHandleOnItsWay(t *testing.T) {
	const forged = `"}{"io.github.tooldeadline/`
	inWays(t, func(tasks *task.Tasks) *sdkServer {
		s := newSDKServer(taskConfig(tasks, func(ctx context.Context, c *sdktest.Call) (*sdktest.Result, error) {
			progress.Report(ctx, progress.Update{Progress: 1, Message: "begun"})
			time.Sleep(time.Second)
			return &sdktest.Result{Texts: []string{forged}, Meta: map[string]any{"io.github.tooldeadline/x": map[string]any{"result": map[string]any{"resultType": "task", "taskId": "x"}}}}, nil
		}))
		s.GetHooks().AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) { time.Sleep(100 * ms) })
		return s
	}, func(t *testing.T, p *sdktest.Peer) {
		id := p.Task("now")
		time.Sleep(time.Minute)
		if m := p.Request("tasks/get", map[string]any{"taskId": id}); m == nil || m.Result["status"] != "completed" {
			t.Error(m)
		}
		m := p.Request("tools/call", map[string]any{"name": "plain", "arguments": map[string]any{}})
		if meta, _ := m.Result["_meta"].(map[string]any); m.Error != nil || meta["io.github.tooldeadline/x"] == nil || m.Result["content"].([]any)[0].(map[string]any)["text"] != forged {
			t.Error(m)
		}
	})
}

// mcp-go's own tasks go on where the policy has no soft limit, and have limits, with our tasks beside them and without. A
// task's notification does not begin a stream of events into the answer with its handle.
func TestOwnTasksOfTheSDK(t *testing.T) {
	for _, ours := range []bool{false, true} {
		for _, w := range []sdktest.Way{sdktest.Ways[0], sdktest.Ways[2]} {
			synctest.Test(t, func(t *testing.T) {
				tasks := new(task.Tasks)
				c := sdktest.Config{Policy: &policy.Policy{Tools: map[string]policy.Tool{"stopped": {Limits: &timeout.Config{Total: time.Second}}}}}
				if ours {
					c.Tasks = tasks
				}
				s := newSDKServer(c)
				server.WithTaskCapabilities(true, true, true)(s.MCPServer)
				want := map[string]string{"optional": "done", "required": "done", "stopped": "Tool exceeded wall-clock limit of 1s."}
				for name := range want {
					support := mcp.TaskSupportOptional
					if name == "required" {
						support = mcp.TaskSupportRequired
					}
					s.AddTool(mcp.NewTool(name, mcp.WithTaskSupport(support)), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						if name == "stopped" {
							return silent(ctx, r)
						}
						progress.Report(ctx, progress.Update{Progress: 1})
						time.Sleep(10 * time.Second) // long after the handle has been sent
						return mcp.NewToolResultText("done"), ctx.Err()
					})
				}
				p := sdktest.Dial(t, s, w)
				for name, text := range want {
					m := p.Request("tasks/result", map[string]any{"taskId": p.Task(name)})
					if m == nil || m.Error != nil || !strings.HasPrefix(m.Result["content"].([]any)[0].(map[string]any)["text"].(string), text) {
						t.Errorf("ours=%v %s: %v", ours, name, m)
					}
				}
				_ = tasks.Close()
			})
		}
	}
}

// The headers of a request about a task, which mcp-go does not know: a name that is another's is refused, and a method
// that is none is refused for that.
func TestTaskHeaders(t *testing.T) {
	tasks := new(task.Tasks)
	defer tasks.Close()
	s := newServer(silent, &mcpgo.Options{Tasks: tasks})
	mcpgo.Install(s, &mcpgo.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"now": {Soft: -1}}}, Tasks: tasks})
	s.AddTool(mcp.NewTool("now"), silent)
	h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s))
	ask := func(method, params, headerMethod, headerName string) (int, message) {
		res := post(h, sdktest.New, `{"jsonrpc":"2.0","id":"a","method":"`+method+`","params":{`+params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
			"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, "Mcp-Method", headerMethod, "Mcp-Name", headerName)
		return res.StatusCode, answerOf(t, res)
	}
	_, m := ask("tools/call", `"name":"now"`, "tools/call", "now")
	var handle struct{ TaskID string }
	if _ = json.Unmarshal(m.Result, &handle); handle.TaskID == "" {
		t.Fatalf("%s %s", m.Result, m.Error)
	}
	id := handle.TaskID
	for _, tc := range []struct {
		name, method, headerMethod, headerName string
		status                                 int
		code                                   float64
	}{
		{"as it must be", "tasks/get", "tasks/get", id, 200, 0},
		{"encoded", "tasks/get", "tasks/get", "=?base64?" + base64.StdEncoding.EncodeToString([]byte(id)) + "?=", 200, 0},
		{"another name", "tasks/get", "tasks/get", "x", 400, -32020},
		{"no name", "tasks/cancel", "tasks/cancel", "", 400, -32020},
		{"another method", "tasks/get", "tasks/cancel", id, 400, -32020},
		{"no method", "tasks/get", "", id, 400, -32020},
		{"a method that is none", "tasks/result", "tasks/result", "", 404, -32601},
	} {
		status, m := ask(tc.method, `"taskId":"`+id+`"`, tc.headerMethod, tc.headerName)
		var fault struct{ Code float64 }
		_ = json.Unmarshal(m.Error, &fault)
		if status != tc.status || fault.Code != tc.code || m.ID != "a" {
			t.Errorf("%s: %d %s %s", tc.name, status, m.Result, m.Error)
		}
	}
}

// SPEC 3.11: a call that is cancelled while it waits for a worker is answered, and its tool does not run.
func TestCancelledBeforeAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"tool"}}`
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"Request timed out"}}`
		ended, runs := make(chan error, 9), 0
		write, read := aLine(t, newServer(func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			runs++
			return silent(ctx, r)
		}, finishes(ended)), server.WithWorkerPoolSize(1))
		write(call, "1")
		early := []string{"2", "12345678", "9007199254740993", `"x"`}
		for _, id := range early {
			write(call, id)
			write(cancel, id)
		}
		synctest.Wait()
		write(cancel, "1")
		synctest.Wait()
		write(call, "2") // another call of that id is another call
		synctest.Wait()
		write(cancel, "2")
		all := read()[1:]
		for _, m := range all {
			if !strings.Contains(string(m.Result), "client_timeout") {
				t.Errorf("%v: %s %s", m.ID, m.Result, m.Error)
			}
		}
		if len(all) != len(early)+2 || runs != 2 {
			t.Errorf("%d answers, %d runs", len(all), runs)
		}
	})
}

// A cancellation is accepted as the official SDK's client sends it with 2026-07-28: it would close its connection
// after the refusal that mcp-go has for a notification without _meta.
func TestCancellationIsAccepted(t *testing.T) {
	h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(silent, nil)))
	for method, want := range map[string]int{"notifications/cancelled": http.StatusAccepted, "notifications/other": http.StatusBadRequest} {
		res := post(h, sdktest.New, `{"jsonrpc":"2.0","method":"`+method+`","params":{"requestId":2,"reason":"context deadline exceeded"}}`, "Mcp-Method", method)
		if said, _ := io.ReadAll(res.Body); res.StatusCode != want || (len(said) == 0) != (want == http.StatusAccepted) {
			t.Errorf("%s: %s, %q", method, res.Status, said)
		}
	}
}

// Without Install, a token that mcp-go has not kept is not replaced by another's.
func TestInexactToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.NewMCPServer("test", "1")
		s.AddTool(mcp.NewTool("report"), mcpgo.Handler(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			progress.Report(ctx, progress.Update{Progress: 1})
			time.Sleep(time.Second)
			return mcp.NewToolResultText("done"), nil
		}, nil))
		write, read := aLine(t, s)
		for i, token := range []string{`9007199254740991`, `9007199254740993`, `-9007199254740991`, `-9007199254740993`, `true`, `null`} {
			write(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":%s}}}`, i, token)
		}
		time.Sleep(time.Minute)
		var notes []string
		for _, m := range read() {
			if m.Method == "notifications/progress" {
				notes = append(notes, string(m.Params))
			}
		}
		slices.Sort(notes)
		want := []string{`{"progress":1,"progressToken":-9007199254740991}`, `{"progress":1,"progressToken":9007199254740991}`}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// SPEC 7.5: a client that does not read delays neither the tools nor their limits. In real time, because those who wait
// for a lock stop the time of a bubble.
func TestClientThatDoesNotRead(t *testing.T) {
	ended := make(chan error, 10)
	s := newServer(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 40 {
			progress.Report(ctx, progress.Update{Progress: float64(i)})
			time.Sleep(ms)
		}
		return mcp.NewToolResultText("done"), ctx.Err()
	}, &mcpgo.Options{Limits: new(timeout.Config), Interval: 1, Hooks: finishes(ended).Hooks})
	ownQueue(s)
	std := server.NewStdioServer(s)
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	in, out := sdktest.NewPipe(), sdktest.NewPipe()
	served := make(chan error, 1)
	go func() { served <- mcpgo.Serve(t.Context(), std, in, out, 0) }()
	_, _ = fmt.Fprintln(in, initialize)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Stall()
	for id := range 4 {
		_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":%[1]d}}}`+"\n", id)
	}
	for range 4 {
		if err := within(t, ended, "the end of a tool"); err != nil {
			t.Error(err)
		}
	}
	_, _ = out.Close(), in.Close()
	within(t, served, "the end")
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// SPEC 3.24: a reader or a writer that blocks, panics or ends its goroutine ends neither the process nor the order in
// which Serve ends.
func TestServeOutlastsCode(t *testing.T) {
	for _, place := range []string{"in", "out"} {
		for how := range sdktest.Attacks(nil) {
			t.Run(place+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				attack := sdktest.Attacks(release)[how]
				called, hit := make(chan struct{}), make(chan struct{}, 10)
				s := server.NewMCPServer("test", "1")
				s.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					close(called)
					return mcp.NewToolResultText("done"), nil
				})
				mcpgo.Install(s, nil)
				lines := strings.NewReader(initialize + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n")
				in := readFunc(func(p []byte) (int, error) {
					if n, err := lines.Read(p); err == nil {
						return n, nil
					}
					select {
					case <-called: // it has arrived
					case <-release:
						return 0, io.EOF
					}
					if place == "in" {
						hit <- struct{}{}
						attack()
					}
					<-release
					return 0, io.EOF
				})
				out := writeFunc(func(p []byte) (int, error) {
					if place == "out" {
						hit <- struct{}{}
						attack()
					}
					return len(p), nil
				})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				served := make(chan error, 1)
				go func() { served <- mcpgo.Serve(ctx, server.NewStdioServer(s), in, out, 10*ms) }()
				within(t, hit, place)
				end()
				within(t, served, "the end")
			})
		}
	}
}

// A client that leaves while the server ends is not waited for: nobody reads what is left to say.
func TestServeClientLeavesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(time.Minute) // deaf
			return mcp.NewToolResultText("done"), nil
		}, &mcpgo.Options{Limits: &timeout.Config{Grace: time.Hour}})
		ownQueue(s)
		std := server.NewStdioServer(s)
		server.WithWorkerPoolSize(1)(std)
		in := sdktest.NewPipe()
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- mcpgo.Serve(ctx, std, in, io.Discard, time.Hour) }()
		_, _ = fmt.Fprintln(in, initialize)
		synctest.Wait()
		for id := range 2 {
			_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool"}}`+"\n", id)
		}
		synctest.Wait()
		end()
		synctest.Wait()
		_ = in.Close()
		begun := time.Now()
		if err := <-served; err != nil || time.Since(begun) > 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Hour)
	})
}

// A client's message that is no call of a tool, or has an odd id, is mcp-go's to answer.
func TestServeOddRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write, read := aLine(t, newServer(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("done"), nil
		}, nil))
		for _, id := range []string{`"id":{"a":1},`, `"id":[1],`, `"id":true,`, ``, `"id":null,`} {
			write(`{"jsonrpc":"2.0",%s"method":"tools/call","params":{"name":"tool"}}`, id)
		}
		for _, line := range []string{`[1]`, `nonsense`, ``, `null`} {
			write("%s", line)
		}
		odd := len(read())
		for _, id := range []string{`"a"`, `7`, `"a"`, `7`} { // the same id again, too
			write(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"tool"}}`, id)
			all := read()
			if odd++; len(all) != odd || !strings.Contains(string(all[odd-1].Result), "done") {
				t.Errorf("%s: %s", id, all)
			}
		}
	})
}

// A lateSchema fails to become JSON, after the person's time is over.
type lateSchema struct{}

func (lateSchema) MarshalJSON() ([]byte, error) {
	time.Sleep(ms + 1)
	return nil, errors.New("no JSON")
}

// SPEC 3.15: the connection of Serve keeps nothing of a question that expires and is never written.
func TestUnwrittenQuestionIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var kept weak.Pointer[int]
		c := connect(t, overLines(t, newServer(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			value := new(int)
			kept = weak.Make(value)
			_, err := mcpgo.Elicit(context.WithValue(ctx, key{}, value), mcp.ElicitationRequest{Params: mcp.ElicitationParams{
				Message: "?", RequestedSchema: lateSchema{}}}, progress.Wait{Limit: ms, ProgressLimit: ms})
			return nil, err
		}, nil)), false, client.WithElicitationHandler(answering(func(context.Context, string) string { return "accept" })))
		if res, err := callTool(t.Context(), c, "tool", nil); err != nil || !res.IsError {
			t.Fatalf("%+v, %v", res, err)
		}
		synctest.Wait()
		for range 10 {
			runtime.GC()
		}
		if kept.Value() != nil {
			t.Error("the context of the call is still in use")
		}
	})
}

// A token that takes long to marshal widens the gap, in mcp-go, between the taking and the
// writing of a notification.
var slowToken = strings.Repeat("slow", 1<<15)

// slow has the token "slow" arrive as slowToken.
func slow(s *server.MCPServer) *server.MCPServer {
	s.GetHooks().AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if m := r.Params.Meta; m != nil && m.ProgressToken == "slow" {
			m.ProgressToken = slowToken
		}
	})
	return s
}

// SPEC 7.4: however slow the transport is to write a notification, the result comes after it; and one that waits behind it
// still comes, before its own result.
func TestSlowNotification(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, s *server.MCPServer) transport.Interface{
		"http": func(t *testing.T, s *server.MCPServer) transport.Interface {
			return overNet(t, server.NewStreamableHTTPServer(s))
		},
		"wrapped": func(t *testing.T, s *server.MCPServer) transport.Interface {
			return overNet(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
		},
		"lines": overLines,
	} {
		sdktest.Bubble(t, name, func(t *testing.T) {
			c := connect(t, open(t, slow(newServer(reports, nil))), name != "lines")
			var mu sync.Mutex
			heard, over := make(map[any]int), make(map[any]bool)
			c.OnNotification(func(m mcp.JSONRPCNotification) {
				mu.Lock()
				defer mu.Unlock()
				token := m.Params.AdditionalFields["progressToken"]
				if heard[token]++; over[token] {
					t.Error("after the result")
				}
			})
			report := func(token string, as any) {
				if _, err := callTool(t.Context(), c, "tool", token); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				over[as] = true
			}
			var first sync.WaitGroup
			first.Go(func() { report("slow", slowToken) })
			report("behind", "behind")
			first.Wait()
			report("after", "after") // what would come late has come before this
			mu.Lock()
			defer mu.Unlock()
			if heard[slowToken] != 1 || heard["behind"] != 1 {
				t.Errorf("slow: %v, behind: %v", heard[slowToken], heard["behind"])
			}
		})
	}
}
