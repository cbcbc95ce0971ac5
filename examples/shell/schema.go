package main

import "github.com/google/jsonschema-go/jsonschema"

// The schemas of the inputs. The SDK derives them from the types, and the method schema adds defaults and bounds.
var (
	runSchema    = bounds{schemaOf[runInput], 30}
	readSchema   = bounds{schemaOf[readInput], 30}
	writeSchema  = bounds{schemaOf[writeInput], 10}
	signalSchema = bounds{schemaOf[signalInput], 10}
)

type bounds struct {
	schema func() *jsonschema.Schema
	wait   float64 // default of wait_s
}

func (d *desk) schema(b bounds) *jsonschema.Schema {
	s := b.schema()
	set := func(name string, least, most, otherwise float64) {
		if p := s.Properties[name]; p != nil {
			p.Minimum, p.Maximum, p.Default = &least, &most, raw(otherwise)
		}
	}
	most := d.maxTimeout.Seconds()
	set("wait_s", 0, maxWait.Seconds(), b.wait)
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
