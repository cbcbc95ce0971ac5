package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// registryFile describes the npm package to the MCP registry.
const registryFile = "server.json"

// describe writes registryFile. The proxy has no tools of its own, so the server's command is an argument
// that clients have to ask for.
func (r *release) describe() error {
	type object map[string]any
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"$schema":     "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":        mcpName,
		"title":       "mcpdeadline",
		"description": "A proxy in front of any MCP server, with which no tool call hangs",
		"version":     r.npmVersion(),
		"websiteUrl":  "https://github.com/tooldeadline/tooldeadline/tree/main/cmd/mcpdeadline",
		"repository":  object{"url": "https://github.com/tooldeadline/tooldeadline", "source": "github", "subfolder": "cmd/mcpdeadline"},
		"packages": []object{{
			"registryType": "npm", "identifier": npmMain, "version": r.npmVersion(),
			"runtimeHint": "npx", "transport": object{"type": "stdio"},
			"packageArguments": []object{
				{"type": "named", "name": "-host", "description": "The host whose limit on a call is kept, such as claude-desktop, cline or zed"},
				{"type": "named", "name": "-soft", "description": "The time after which a call is answered with a handle and keeps running, such as 40s"},
				{"type": "positional", "value": "--"},
				{"type": "positional", "valueHint": "command", "description": "The command of the MCP server, word by word, such as npx -y @modelcontextprotocol/server-everything",
					"isRequired": true, "isRepeated": true},
			},
		}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, registryFile), text.Bytes(), 0o644)
}
