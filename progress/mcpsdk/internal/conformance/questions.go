package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	signUpSchema = `{"type": "object", "required": ["username", "email"], "properties": {
		"username": {"type": "string", "description": "User's response"},
		"email": {"type": "string", "description": "User's email address"}}}`
	defaultsSchema = `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}}}`
	enumsSchema = `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
			"enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}]}}}}`
)

// addQuestions adds the tools that ask the person or the model at the client.
func addQuestions(s *mcp.Server) {
	add(s, "test_elicitation", func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		Message string `json:"message"`
	}) ([]mcp.Content, error) {
		return ask(ctx, req, in.Message, signUpSchema)
	})
	for name, schema := range map[string]string{
		"test_elicitation_sep1034_defaults": defaultsSchema,
		"test_elicitation_sep1330_enums":    enumsSchema,
	} {
		add(s, name, func(ctx context.Context, req *mcp.CallToolRequest, _ none) ([]mcp.Content, error) {
			return ask(ctx, req, "Please fill in the form.", schema)
		})
	}
	add(s, "test_sampling", func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		Prompt string `json:"prompt"`
	}) ([]mcp.Content, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; the runner speaks 2025-11-25
		prompt := &mcp.SamplingMessage{Role: "user", Content: say(in.Prompt)}
		//lint:ignore SA1019 as above
		params := &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{prompt}}
		//lint:ignore SA1019 as above
		res, err := req.Session.CreateMessage(ctx, params)
		if err != nil {
			return nil, err
		}
		text, ok := res.Content.(*mcp.TextContent)
		if !ok {
			return nil, fmt.Errorf("the model's answer is a %T, want text", res.Content)
		}
		return []mcp.Content{say("LLM response: " + text.Text)}, nil
	})
}

func ask(ctx context.Context, req *mcp.CallToolRequest, message, schema string) ([]mcp.Content, error) {
	res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(res.Content)
	if err != nil {
		return nil, err
	}
	return []mcp.Content{say(fmt.Sprintf("Elicitation completed: action=%s, content=%s", res.Action, answer))}, nil
}
