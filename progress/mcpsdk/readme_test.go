package mcpsdk_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/snippet"
)

// The README's snippets that use this module compile, as they stand.
func TestReadmeSnippets(t *testing.T) {
	snippet.Compile(t, snippet.Set{
		File: "../../README.md", Has: "mcpsdk", Least: 3,
		Imports: map[string]string{
			"context": "context", "errors": "errors", "fmt": "fmt", "time": "time",
			"mcp":     "github.com/modelcontextprotocol/go-sdk/mcp",
			"mcpsdk":  "github.com/tooldeadline/tooldeadline/progress/mcpsdk",
			"timeout": "github.com/tooldeadline/tooldeadline/timeout",
		},
		Stubs: "\nvar session *mcp.ClientSession\n",
	})
}
