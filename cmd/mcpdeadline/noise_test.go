package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
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
			if m := readMessage([]byte(line)); !m.isMessage() || m.Method == "tools/call" {
				t.Errorf("%q", line)
			}
		}
		eventually(t, "all of it on stderr", func() bool {
			said := h.stderr()
			return strings.Contains(said, noiseMark+"Welcome to evil 1.0!\n") && strings.Contains(said, noiseMark+"Loading...\n") &&
				strings.Contains(said, noiseMark+"Processing...\n") && strings.Contains(said, noiseMark+`{"level":"info","msg":"x"}`)
		})
		if got := strings.Count(h.stderr(), "it should print to stderr"); got != 1 {
			t.Errorf("the advice was given %d times", got)
		}
	})
}

func TestSift(t *testing.T) {
	const message = `{"jsonrpc":"2.0","method":"x"}`
	for _, tc := range []struct{ name, line, message, noise string }{
		{"a message", message, message, ""},
		{"white space before it", " \t" + message, " \t" + message, ""},
		{"after a BOM", "\ufeff" + message, message, ""},
		{"after a BOM and text", "\ufeffx" + message, message, "x"},
		{"a batch", "[" + message + "," + message + "]", "[" + message + "," + message + "]", ""},
		{"a batch after a BOM", "\ufeff[" + message + "]", "[" + message + "]", ""},
		{"a batch with something else", "[" + message + ",1]", "", "[" + message + ",1]"},
		{"an empty batch", "[]", "", "[]"},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"2.0","id":null,"error":{}}`, ""},
		{"an empty result", `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":null}`, ""},
		{"text", "x", "", "x"},
		{"a method that is a number", `{"jsonrpc":"2.0","method":1}`, "", `{"jsonrpc":"2.0","method":1}`},
		{"within another object", `{"sent":` + message + `}`, "", `{"sent":` + message + `}`},
		{"text after it", message + "x", "", message + "x"},
		{"another message before it", message + message, message, message},
		{"text of the host's request", `got {"jsonrpc":"2.0","id":1,"method":"initialize"}`, "", `got {"jsonrpc":"2.0","id":1,"method":"initialize"}`},
	} {
		m, noise := sift(readMessage([]byte(tc.line)))
		got := [2]string{"", string(noise)}
		if m != nil {
			got[0] = string(m.raw)
		}
		if d := cmp.Diff([2]string{tc.message, tc.noise}, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}
