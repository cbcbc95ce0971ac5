package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf returns the schema that the SDK derives from a type.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err)
	}
	return s
}

// bounded returns the schema of an input, with defaults and bounds. wait is the default of wait_s.
func bounded[T any](d *desk, wait float64) *jsonschema.Schema {
	s := schemaOf[T]()
	set := func(name string, least, most, otherwise float64) {
		if p := s.Properties[name]; p != nil {
			p.Minimum, p.Maximum, p.Default = &least, &most, json.RawMessage(fmt.Sprint(otherwise))
		}
	}
	most := d.maxTimeout.Seconds()
	set("wait_s", 0, maxWait.Seconds(), wait)
	set("timeout_s", 0.001, most, min(3600, most))
	set("idle_s", 0, most, min(600, most))
	set("max_chars", 500, 200_000, 20_000)
	if p := s.Properties["job"]; p != nil {
		p.Minimum = ptr(1.0)
	}
	if p := s.Properties["cursor"]; p != nil {
		p.Type, p.Types, p.Minimum, p.Maximum = "integer", nil, ptr(0.0), ptr(float64(1<<53))
	}
	if p := s.Properties["input"]; p != nil {
		p.Type, p.Types = "string", nil // without null, which some models would send
	}
	if p := s.Properties["command"]; p != nil {
		p.MinLength, p.MaxLength = ptr(1), ptr(100_000)
	}
	if p := s.Properties["signal"]; p != nil {
		p.Enum = []any{"interrupt", "stop", "kill", "hangup", "quit", "terminate", "continue"}
	}
	return s
}

func ptr[T any](v T) *T { return &v }
