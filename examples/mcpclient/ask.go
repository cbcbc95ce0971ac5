package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A person answers the questions of the server on the terminal, one after the other.
type person struct {
	in      io.Reader
	out     io.Writer
	display *serial
	call    context.Context // the context of the tool call

	mu    sync.Mutex
	read  sync.Once
	typed chan string // closed at the end of in
}

// answer is the elicitation handler. It asks for the fields of the requested schema, and returns the action cancel at
// the end of the input, such as Ctrl-D.
func (p *person) answer(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	// The hold suspends the idle limit of the call while it waits for the person.
	defer heartbeat.Hold(ctx)()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.display.pause()()

	schema := new(jsonschema.Schema)
	if raw, err := json.Marshal(req.Params.RequestedSchema); err != nil {
		return nil, err
	} else if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.out, "The server asks: %s\n", harmless(req.Params.Message))
	content := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		v, err := p.field(ctx, name, schema.Properties[name], slices.Contains(schema.Required, name))
		if err == io.EOF {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		} else if err != nil {
			fmt.Fprintln(p.out, "(no answer is awaited any more)")
			return nil, err
		}
		if v != nil {
			content[name] = v
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// field asks for a value until the person enters a valid one. It returns nil for an empty answer to an optional field.
func (p *person) field(ctx context.Context, name string, s *jsonschema.Schema, required bool) (any, error) {
	label := name
	if s.Title != "" {
		label = s.Title
	}
	hint := s.Type
	switch {
	case s.Type == "boolean":
		hint = "y/n"
	case s.Enum != nil:
		hint = strings.Trim(fmt.Sprint(s.Enum), "[]")
	}
	for {
		fmt.Fprintf(p.out, "%s (%s)? ", harmless(label), harmless(hint))
		line, err := p.line(ctx)
		if err != nil {
			fmt.Fprintln(p.out)
			return nil, err
		}
		if line == "" && !required {
			return nil, nil
		}
		if v, ok := parseAnswer(line, s); ok {
			return v, nil
		}
	}
}

func parseAnswer(line string, s *jsonschema.Schema) (any, bool) {
	switch s.Type {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes":
			return true, true
		case "n", "no":
			return false, true
		}
		return nil, false
	case "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		return n, err == nil
	case "number":
		f, err := strconv.ParseFloat(line, 64)
		return f, err == nil
	}
	return line, s.Enum == nil || slices.Contains(s.Enum, any(line))
}

// line returns the next line of the input, io.EOF at its end, or the cause if ctx or the call ends first. A read from a
// terminal cannot be cancelled, so one goroutine reads for all questions, and blocks until the program ends.
func (p *person) line(ctx context.Context) (string, error) {
	p.read.Do(func() {
		p.typed = make(chan string)
		go func() {
			defer close(p.typed)
			for s := bufio.NewScanner(p.in); s.Scan(); {
				p.typed <- strings.TrimSpace(s.Text())
			}
		}()
	})
	select {
	case s, ok := <-p.typed:
		if !ok {
			return "", io.EOF
		}
		return s, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-p.call.Done(): // some servers do not cancel their questions when the call ends
		return "", context.Cause(p.call)
	}
}
