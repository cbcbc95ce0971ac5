package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A log of progress notifications as a client gets them, by token.
type notes struct {
	mu      sync.Mutex
	byToken map[any][]note
	over    map[any]bool // the call with the token has its result
	late    []string
}

type note struct {
	Progress, Total float64
	Message         string
}

func record(c *client.Client) *notes {
	n := newNotes()
	n.record(c)
	return n
}

func newNotes() *notes { return &notes{byToken: make(map[any][]note), over: make(map[any]bool)} }

// awaitedBy has the tools of s pause until the client has heard what they say, one call at a time. mcp-go
// may lose it, and then they do not wait for ever.
func (n *notes) awaitedBy(s *server.MCPServer) *server.MCPServer {
	s.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if m := r.Params.Meta; m == nil || m.ProgressToken == nil {
				return next(ctx, r)
			}
			before := n.count()
			return next(context.WithValue(ctx, heardKey{}, func() {
				for end := time.Now().Add(3500 * ms); n.count() == before && time.Now().Before(end); {
					time.Sleep(ms)
				}
				before = n.count()
			}), r)
		}
	})
	return s
}

// count is how many notifications there were.
func (n *notes) count() (all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, some := range n.byToken {
		all += len(some)
	}
	return all
}

func (n *notes) record(c *client.Client) {
	c.OnNotification(func(m mcp.JSONRPCNotification) {
		if m.Method != "notifications/progress" {
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		f := m.Params.AdditionalFields
		p, _ := f["progress"].(float64)
		total, _ := f["total"].(float64)
		message, _ := f["message"].(string)
		token := f["progressToken"]
		n.byToken[token] = append(n.byToken[token], note{p, total, message})
		if n.over[token] {
			n.late = append(n.late, fmt.Sprint(token))
		}
	})
}

func (n *notes) of(token any) []note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.byToken[token])
}

func (n *notes) finished(token any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over[token] = true
}

// progressOf reads until n calls have been answered, and returns the params of their progress, sorted.
func (r *raw) progressOf(n int) (notes []string) {
	r.t.Helper()
	for n > 0 {
		m := r.read()
		if m.Method == "notifications/progress" {
			notes = append(notes, string(m.Params))
		} else if m.Method == "" {
			n--
		}
	}
	slices.Sort(notes)
	return notes
}

// Without Install, a token that mcp-go has not kept is not replaced by another's.
func TestInexactToken(t *testing.T) {
	t.Parallel()
	s := server.NewMCPServer("test", "1")
	s.Use(mcpgo.Middleware(toolPolicy))
	s.AddTool(mcp.NewTool("report"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: 1})
		time.Sleep(2500 * ms)
		return mcp.NewToolResultText("done"), nil
	})
	r := newRaw(t, s)
	tokens := []string{`9007199254740991`, `9007199254740993`, `-9007199254740991`, `-9007199254740993`, `true`, `null`}
	for i, token := range tokens { // all at once, since each lingers
		r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":%s}}}`, i, token))
	}
	want := []string{`{"progress":1,"progressToken":-9007199254740991}`, `{"progress":1,"progressToken":9007199254740991}`}
	if diff := cmp.Diff(want, r.progressOf(len(tokens))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// SPEC 7.4: over hundreds of runs nothing comes after the result, and what was in flight when
// the tool returned comes before it.
func TestNothingAfterTheResult(t *testing.T) {
	const runs = 40 // 5 for each of 8
	each(t, allLinks, func(t *testing.T, l link) {
		// See "What mcp-go does not allow" in the package's documentation for these.
		together, rare := 8, 0
		switch {
		case strings.HasPrefix(l.name, "http 2025"), strings.HasSuffix(l.name, "event store"):
			together = 1
		case strings.HasPrefix(l.name, "stdio"):
			rare = runs / 4 // without waiting for the writer it would be most of them
		}
		c := l.connect(t, newServer())
		got := record(c)
		var wg sync.WaitGroup
		for w := range together {
			wg.Go(func() {
				for i := range runs / together {
					token := fmt.Sprint(w, "-", i)
					_, err := c.CallTool(soon(t), call{tool: "report", args: map[string]any{"n": 2 + i%3, "everyMs": 0.2, "lingerMs": float64(i%10) / 10}, token: token}.request())
					got.finished(token)
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(100 * ms)
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.late) > rare {
			t.Errorf("%d after the result: %v", len(got.late), got.late)
		}
		if len(got.byToken) < runs/2 { // mcp-go drops some where the machine is busy
			t.Errorf("only %d of %d calls sent anything", len(got.byToken), runs)
		}
		for token, notes := range got.byToken {
			for i, n := range notes[1:] {
				if n.Progress <= notes[i].Progress {
					t.Errorf("%v: %v", token, notes)
					break
				}
			}
		}
	})
}

// SPEC 7.5: a client that does not read delays neither the tool nor its limits.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Run("stdio", func(t *testing.T) { clientThatDoesNotRead(t, pipes) })
	t.Run("serve", func(t *testing.T) {
		clientThatDoesNotRead(t, func(t *testing.T, s *server.MCPServer) (io.Reader, io.WriteCloser) {
			return servePipes(t, s)
		})
	})
}

func clientThatDoesNotRead(t *testing.T, pipes func(*testing.T, *server.MCPServer) (io.Reader, io.WriteCloser)) {
	ended := make(chan timeout.Snapshot, 10)
	s := newServer(mcpgo.WithOptions(timeout.WithHooks(timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s },
	})))
	long := strings.Repeat("x", 100_000) // more than a pipe holds
	in, out := pipes(t, s)
	write := func(method string, id int, params any) {
		data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if _, err := out.Write(append(data, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	write("initialize", 1, map[string]any{"protocolVersion": "2025-11-25", "clientInfo": map[string]any{"name": "n", "version": "1"}, "capabilities": map[string]any{}})
	for id := 2; id < 5; id++ {
		write("tools/call", id, map[string]any{"name": "report", "arguments": map[string]any{"n": 40, "everyMs": 1, "message": long},
			"_meta": map[string]any{"progressToken": id}})
	}
	write("tools/call", 5, map[string]any{"name": "total", "_meta": map[string]any{"progressToken": 5}})
	for range 4 {
		s := within(t, ended, "the end of a tool")
		if (s.Err != nil) != (s.Tool == "total") {
			t.Errorf("%s: %v", s.Tool, s.Err)
		}
		if s.Elapsed > 15*time.Second {
			t.Errorf("%s took %v", s.Tool, s.Elapsed)
		}
	}

	// Updates that are still in the queue when the answers are ready do not come after them.
	time.Sleep(time.Second)
	answered := make(map[any]bool)
	lines := make(chan message, 1000)
	go func() {
		for d := json.NewDecoder(in); ; {
			var m message
			if d.Decode(&m) != nil {
				close(lines)
				return
			}
			lines <- m
		}
	}()
	for quiet := time.Duration(slack); ; {
		select {
		case m := <-lines:
			var p struct{ ProgressToken any }
			_ = json.Unmarshal(m.Params, &p)
			if m.Method == "notifications/progress" && answered[p.ProgressToken] {
				t.Errorf("progress of %v after its answer", p.ProgressToken)
			}
			if answered[m.ID] = true; len(answered) == 6 { // with the nil of notifications
				quiet = 300 * ms
			}
			continue
		case <-time.After(quiet):
			if len(answered) != 6 {
				t.Errorf("answers to %v", answered)
			}
		}
		break
	}
}
