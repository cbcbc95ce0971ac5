package jsonrpc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// SPEC 16.3: messages are separated from noise on the same line, and no message is lost with the noise.
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
		{"another message before it", message + message, "[" + message + "," + message + "]", ""},
		{"more before it", "x " + message + " " + message + "\t" + message + " ", "[" + message + "," + message + "," + message + "]", "x "},
		{"another object before it", `{"a":1}` + message, message, `{"a":1}`},
		{"the host's request before it", `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + message, message, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`},
		{"a message and half a message", message + message[1:], "", message + message[1:]},
		{"bytes that are no UTF-8", `{"jsonrpc":"2.0","id":"` + "\xff" + `","method":"` + "a\xc3" + `"}`, "{\"jsonrpc\":\"2.0\",\"id\":\"\ufffd\",\"method\":\"a\ufffd\"}", ""},
		{"such bytes in text", "\xff" + message, message, "\xff"},
		{"text of the host's request", `got {"jsonrpc":"2.0","id":1,"method":"initialize"}`, "", `got {"jsonrpc":"2.0","id":1,"method":"initialize"}`},
	} {
		m, noise := jsonrpc.Sift(jsonrpc.Parse([]byte(tc.line)))
		got := [2]string{"", string(noise)}
		if m != nil {
			got[0] = string(m.Raw)
		}
		if d := cmp.Diff([2]string{tc.message, tc.noise}, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}
