package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// banner is what servers print to stdout before their first message.
const banner = "\ufeffWelcome to evil 1.0!\n\x1b[32mready\x1b[0m\n{\"level\":30,\"msg\":\"listening\"}\n[1,2]\nLoading... "

// noises are what servers print to stdout before an answer. The last one has no newline.
var noises = map[string]string{
	"a line":                  "this is no JSON\n",
	"a BOM":                   "\ufeff",
	"colours":                 "\x1b[1;31merror\x1b[0m: none\n",
	"foreign JSON":            `{"level":"info","msg":"x"}` + "\n",
	"another version":         `{"jsonrpc":"1.0","method":"x"}` + "\n",
	"a list":                  `[{"level":"info"}]` + "\n",
	"text without newline":    "Processing... ",
	"colours without newline": "\x1b[32mdone\x1b[0m",
	"JSON without newline":    `{"level":"info"}`,
	"half of an object":       `{"a":{"b":`,
	"the host's request":      `Received: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}` + "\n",
	"no end of braces":        strings.Repeat("{", 1000),
}

// SPEC 16.3: only messages reach the host, and each of them does.
func TestOnlyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, []string{"EVIL_BANNER=" + banner}, evilArgs(t)...).initialized()
		n := 0
		for name, text := range noises {
			n++
			args, _ := json.Marshal(map[string]string{"text": text})
			if w := h.call(fmt.Sprint(n), "print", string(args)); w.text() != "done" || !strings.HasPrefix(w.raw, `{"jsonrpc":"2.0","id":`) {
				t.Errorf("%s: %s", name, w.raw)
			}
		}
		for _, line := range h.lines {
			if m := jsonrpc.Parse([]byte(line)); !m.IsMessage() || m.Method == "tools/call" {
				t.Errorf("%q", line)
			}
		}
		eventually(t, "all of it on stderr", func() bool {
			said := h.stderr()
			return strings.Contains(said, calls.NoiseMark+"Welcome to evil 1.0!\n") && strings.Contains(said, calls.NoiseMark+"Loading...\n") &&
				strings.Contains(said, calls.NoiseMark+"Processing...\n") && strings.Contains(said, calls.NoiseMark+`{"level":"info","msg":"x"}`)
		})
		if got := strings.Count(h.stderr(), "it should print to stderr"); got != 1 {
			t.Errorf("the advice was given %d times", got)
		}
	})
}
