package mcpgo_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// A tool that calls runtime.Goexit takes neither its own progress along nor that of the calls
// after it (SPEC 3.13), and nor does a handler of notifications of a client with Limit (SPEC 8.3).
func TestGoexit(t *testing.T) {
	each(t, allLinks, func(t *testing.T, l link) {
		got := newNotes()
		c := connect(t, mcpgo.Limit(l.open(t, got.awaitedBy(newServer())), mcpgo.ClientLimits{}, nil), l.modern)
		got.record(c)
		linger := 50
		if l.name == process.name { // which cannot know what has been heard
			linger = 500
		}
		var once sync.Once
		c.OnNotification(func(m mcp.JSONRPCNotification) {
			if m.Method == "notifications/progress" {
				once.Do(runtime.Goexit)
			}
		})
		for _, token := range []string{"first", "second", "third"} {
			l.until(func() bool { return len(got.of(token)) > 0 }, func() {
				res, err := c.CallTool(soon(t), call{tool: "goexit", token: token, args: map[string]any{"lingerMs": linger}}.request())
				if err != nil {
					t.Fatal(err)
				}
				if v := view(t, res); v.Texts[0] != "timeout: the function called runtime.Goexit" {
					t.Errorf("%+v", v)
				}
			})
			if n := got.of(token); len(n) == 0 || n[0].Progress != 1 {
				t.Errorf("%s: %v", token, n)
			}
		}
	})
}
