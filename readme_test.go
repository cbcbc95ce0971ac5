package tooldeadline_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/snippet"
)

const core = "github.com/tooldeadline/tooldeadline/"

// The README's snippets compile, as they stand, each in the module that it is about.
func TestReadmeSnippets(t *testing.T) {
	snippet.Compile(t, snippet.Set{
		File: "README.md", Not: []string{"mcpsdk", "mcpgo"}, Least: 5,
		Imports: map[string]string{
			"context": "context", "errors": "errors", "exec": "os/exec", "fmt": "fmt", "http": "net/http",
			"log": "log", "os": "os", "synctest": "testing/synctest", "testing": "testing", "time": "time",
			"heartbeat": core + "heartbeat", "procgroup": core + "procgroup", "progress": core + "progress",
			"stream": core + "stream", "timeout": core + "timeout",
		},
		Stubs: `
var (
	files     []string
	requested time.Duration
	transport struct{ HTTPClient *http.Client }
)

func index(context.Context, string) error             { return nil }
func analyse(context.Context) (string, error)         { return "", nil }
func explore(context.Context) error                   { return nil }
`,
	})
}

func TestReadmeSnippetsOfAdapters(t *testing.T) {
	for _, s := range []snippet.Set{{
		Module: "progress/mcpsdk", Has: "mcpsdk", Least: 3,
		Imports: map[string]string{
			"context": "context", "errors": "errors", "fmt": "fmt", "time": "time",
			"mcp":    "github.com/modelcontextprotocol/go-sdk/mcp",
			"mcpsdk": core + "progress/mcpsdk", "request": core + "progress/request", "timeout": core + "timeout",
		},
		Stubs: "\nvar session *mcp.ClientSession\n",
	}, {
		Module: "progress/mcpgo", Has: "mcpgo", Least: 2,
		Imports: map[string]string{
			"client":  "github.com/mark3labs/mcp-go/client",
			"context": "context", "os": "os", "time": "time",
			"mcpgo": core + "progress/mcpgo", "request": core + "progress/request",
			"server":    "github.com/mark3labs/mcp-go/server",
			"timeout":   core + "timeout",
			"transport": "github.com/mark3labs/mcp-go/client/transport",
		},
		Stubs: "\nvar connection transport.Interface\n",
	}} {
		t.Run(s.Module, func(t *testing.T) {
			if _, err := os.Stat(s.Module); errors.Is(err, fs.ErrNotExist) {
				t.Skip("not in a clone of the repository: a module that was downloaded is without the ones below it")
			}
			s.File = "README.md"
			snippet.Compile(t, s)
		})
	}
}
