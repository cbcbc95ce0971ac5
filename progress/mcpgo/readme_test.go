package mcpgo_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/snippet"
)

// The README's snippets that use this module compile, as they stand.
func TestReadmeSnippets(t *testing.T) {
	snippet.Compile(t, snippet.Set{
		File: "../../README.md", Has: "mcpgo", Least: 2,
		Imports: map[string]string{
			"client":  "github.com/mark3labs/mcp-go/client",
			"context": "context", "os": "os", "time": "time",
			"mcpgo":     "github.com/tooldeadline/tooldeadline/progress/mcpgo",
			"server":    "github.com/mark3labs/mcp-go/server",
			"timeout":   "github.com/tooldeadline/tooldeadline/timeout",
			"transport": "github.com/mark3labs/mcp-go/client/transport",
		},
		Stubs: "\nvar connection transport.Interface\n",
	})
}
