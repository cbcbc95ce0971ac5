package tooldeadline_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/snippet"
)

// The README's snippets compile, as they stand. Those of the adapters are tested in the
// adapters' modules.
func TestReadmeSnippets(t *testing.T) {
	const core = "github.com/tooldeadline/tooldeadline/"
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
)

func index(context.Context, string) error             { return nil }
func analyse(context.Context) (string, error)         { return "", nil }
func explore(context.Context) error                   { return nil }
`,
	})
}
