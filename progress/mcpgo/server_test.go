package mcpgo_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// The parts of a result that a test compares.
type result struct {
	Texts      []string
	IsError    bool
	Structured any
	Outcome    string // kind, exit code, the limit and the limits in ms
}

func (r result) with(structured any) result { r.Structured = structured; return r }

func view(t *testing.T, res *mcp.CallToolResult) result {
	t.Helper()
	v := result{IsError: res.IsError, Structured: res.StructuredContent}
	for _, c := range res.Content {
		v.Texts = append(v.Texts, c.(mcp.TextContent).Text)
	}
	if raw := res.Meta.GetMetaField(toolcall.OutcomeKey); raw != nil {
		data, _ := json.Marshal(raw)
		var o toolcall.Outcome
		if err := json.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		v.Outcome = fmt.Sprint(o.Kind, " ", o.ExitCode, " ", o.Limit, " ", o.Total, " ", o.Idle)
		if o.Abandoned {
			v.Outcome += " abandoned"
		}
	}
	return v
}

func stopped(kind, limits, text string, more ...string) result {
	return result{Texts: append([]string{text}, more...), IsError: true, Outcome: kind + " 124 " + limits}
}

const (
	msgTotal = "Tool exceeded wall-clock limit of 0.06s."
	msgIdle  = "No progress for 0.06s (idle timeout). Tool should call heartbeat() during long work."
)

// SPEC 2.6, 3.9, 3.13, 7.7: what the client gets of each way to end.
func TestResults(t *testing.T) {
	const badTimeout = `timeout: timeoutMs="soon": want milliseconds as a whole number from 1 to 9223372036854, such as 120000`
	done := result{Texts: []string{"done"}}
	for _, tc := range []struct {
		name  string
		call  call
		want  result
		again int
	}{
		{"returns", call{tool: "noop"}, done, 0},
		{"beats longer than its idle limit", call{tool: "alive"}, done, 0},
		{"total", call{tool: "total"}, stopped("total", "60 60 0", msgTotal), 0},
		{"idle", call{tool: "idle"}, stopped("idle", "60 3.6e+06 60", msgIdle), 0},
		{"deaf", call{tool: "deaf"}, stopped("total", "60 60 0 abandoned", msgTotal), 0},
		{"partial result, shared", call{tool: "partial"}, stopped("total", "60 60 0", msgTotal, "half of it").with(map[string]any{"lines": 3.0}), 1},
		{"a question that comes too late", call{tool: "asks"}, stopped("total", "60 60 0", msgTotal), 0},
		{"panic", call{tool: "panic"}, result{Texts: []string{"panic: boom"}, IsError: true}, 0},
		{"goexit", call{tool: "goexit"}, result{Texts: []string{"timeout: the function called runtime.Goexit"}, IsError: true}, 0},
		{"timeoutMs in _meta", call{tool: "wait", meta: map[string]any{"timeoutMs": 70}}, stopped("total", "70 70 0", "Tool exceeded wall-clock limit of 0.07s."), 0},
		{"timeoutMs in the arguments", call{tool: "wait", args: map[string]any{"timeoutMs": 70}}, stopped("total", "70 70 0", "Tool exceeded wall-clock limit of 0.07s."), 0},
		{"_meta goes first", call{tool: "wait", args: map[string]any{"timeoutMs": 80}, meta: map[string]any{"timeoutMs": 70}}, stopped("total", "70 70 0", "Tool exceeded wall-clock limit of 0.07s."), 0},
		{"timeoutMs above the ceiling", call{tool: "ceiling", args: map[string]any{"timeoutMs": 9000000}}, stopped("total", "60 60 0", msgTotal), 0},
		{"timeoutMs that makes no sense", call{tool: "wait", args: map[string]any{"timeoutMs": "soon"}}, result{Texts: []string{badTimeout}, IsError: true}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			each(t, named("stdio 2025", "sse 2025", "http 2026"), func(t *testing.T, l link) {
				c := l.connect(t, newServer())
				for range 1 + tc.again {
					res, err := c.CallTool(soon(t), tc.call.request())
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(tc.want, view(t, res)); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// The tool's message about its own failure is left to mcp-go.
func TestOwnError(t *testing.T) {
	each(t, links, func(t *testing.T, l link) {
		_, err := l.connect(t, newServer()).CallTool(soon(t), call{tool: "own"}.request())
		if err == nil || err.Error() != "internal error: no such file" {
			t.Errorf("%v", err)
		}
	})
}

// Five tools that ignore their contexts have the five workers of a stdio server; the limits
// give them back (SPEC 3.9).
func TestDeafToolsDoNotStarveTheServer(t *testing.T) {
	const long = 12 * time.Second // in which even a slow machine answers
	for _, l := range named("stdio 2025", "stdio 2026", "process") {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := l.connect(t, newServer())
			start := time.Now()
			answers := make(chan error, 5)
			for range 5 {
				go func() {
					_, err := c.CallTool(soon(t), call{tool: "deaf", args: map[string]any{"forMs": float64(long / ms)}}.request())
					answers <- err
				}()
			}
			for range 5 {
				if err := <-answers; err != nil {
					t.Error(err)
				}
			}
			for range 5 {
				if _, err := c.CallTool(soon(t), call{tool: "noop"}.request()); err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(start); took >= long {
				t.Errorf("as long as the deaf ones: %v", took)
			}
		})
	}
}
