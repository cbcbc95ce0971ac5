package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A PNG of one pixel, and a WAV of no samples.
var (
	png = []byte("\x89PNG\r\n\x1a\n" +
		"\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" +
		"\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef" +
		"\x00\x00\x00\x00IEND\xaeB`\x82")
	wav = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" +
		"\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
)

// none is the type of the arguments of a tool without arguments.
type none struct{}

func say(s string) mcp.Content { return &mcp.TextContent{Text: s} }

func embed(uri, mime, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

// addContent adds the tools whose results have content of each type, and a tool whose input schema the client must
// receive unchanged.
func addContent(s *mcp.Server) {
	for name, content := range map[string][]mcp.Content{
		"test_simple_text":       {say("This is a simple text response for testing.")},
		"test_image_content":     {&mcp.ImageContent{Data: png, MIMEType: "image/png"}},
		"test_audio_content":     {&mcp.AudioContent{Data: wav, MIMEType: "audio/wav"}},
		"test_embedded_resource": {embed("test://embedded-resource", "text/plain", "This is an embedded resource content.")},
		"test_multiple_content_types": {
			say("Multiple content types test:"),
			&mcp.ImageContent{Data: png, MIMEType: "image/png"},
			embed("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`),
		},
	} {
		add(s, name, func(context.Context, *mcp.CallToolRequest, none) ([]mcp.Content, error) { return content, nil })
	}
	add(s, "test_error_handling", func(context.Context, *mcp.CallToolRequest, none) ([]mcp.Content, error) {
		return nil, errors.New("This tool intentionally returns an error for testing") //lint:ignore ST1005 the scenario's words
	})
	s.AddTool(&mcp.Tool{
		Name: "json_schema_2020_12_tool", Description: "Has an input schema with keywords of JSON Schema 2020-12.",
		InputSchema: json.RawMessage(`{
			"$schema": "https://json-schema.org/draft/2020-12/schema",
			"type": "object",
			"$defs": {"address": {"type": "object", "properties": {
				"street": {"type": "string"}, "city": {"type": "string"}}}},
			"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
			"additionalProperties": false}`),
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{say("listed, not called")}}, nil
	})
}

// add adds a typed tool with arguments In, whose result is the content that h returns.
func add[In any](s *mcp.Server, name string, h func(context.Context, *mcp.CallToolRequest, In) ([]mcp.Content, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: "A tool of the conformance scenarios."},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			content, err := h(ctx, req, in)
			return &mcp.CallToolResult{Content: content}, nil, err
		})
}
