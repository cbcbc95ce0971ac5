// Package mcpgo puts tool execution deadlines into servers and clients of mcp-go.
package mcpgo
