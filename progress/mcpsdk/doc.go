// Package mcpsdk puts tool execution deadlines into servers and clients of the
// official Go SDK for MCP.
package mcpsdk
