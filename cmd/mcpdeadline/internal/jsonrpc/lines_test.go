package jsonrpc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// Lines are the same however they are split, and a line that is too long is reported.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\n\nccccc\nddddddddddddddddddd\ne"), uint8(3))
	f.Add([]byte("a\rb\r\r\nc\r\n\rd\n"), uint8(2))
	f.Add([]byte("0123456789\n0123456789a\n"), uint8(1))
	f.Add([]byte(strings.Repeat("0", 300)+"\n"), uint8(3))
	f.Fuzz(func(t *testing.T, input []byte, step uint8) {
		const most = 10
		var want, got []string
		for _, line := range bytes.SplitAfter(input, []byte("\n")) {
			content, ended := bytes.CutSuffix(line, []byte("\n"))
			switch {
			case !ended:
			case len(content) > most:
				want = append(want, fmt.Sprintf("long %d %q", len(content), content))
			case len(bytes.TrimSpace(content)) > 0:
				want = append(want, strings.ReplaceAll(string(bytes.TrimRight(content, "\r")), "\r", " "))
			}
		}
		s := &jsonrpc.Splitter{
			Max:  most,
			Line: func(line []byte) { got = append(got, string(line)) },
			Long: func(head, tail []byte, length int) {
				if !bytes.HasSuffix(append(bytes.Clone(head), tail...), tail) || len(tail) > jsonrpc.TailKept || len(head) > jsonrpc.HeadKept {
					t.Errorf("%q, %q", head, tail)
				}
				whole := head
				if length > len(head) {
					whole = append(bytes.Clone(head), tail[max(len(tail)-(length-len(head)), 0):]...)
				}
				got = append(got, fmt.Sprintf("long %d %q", length, whole))
			},
		}
		for rest := input; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if len(input) < jsonrpc.HeadKept {
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		}
	})
}

func TestIDOf(t *testing.T) {
	pad := strings.Repeat("x", 10000)
	for _, tc := range []struct{ name, message, want string }{
		{"before", `{"jsonrpc":"2.0","id":7,"result":{"text":"` + pad + `"}}`, `7`},
		{"a string", `{"jsonrpc":"2.0","id":"a\"b","result":{"text":"` + pad + `"}}`, `"a\"b"`},
		{"after", `{"result":{"id":3,"text":"` + pad + `"},"jsonrpc":"2.0","id":7}`, `7`},
		{"after, a string", `{"result":{"text":"` + pad + `"},"jsonrpc":"2.0","id": "x" }`, `"x"`},
		{"inside only", `{"result":{"id":3,"text":"` + pad + `"},"jsonrpc":"2.0"}`, ``},
		{"no message", pad, ``},
	} {
		head, tail := []byte(tc.message)[:jsonrpc.HeadKept], jsonrpc.LastOf([]byte(tc.message), jsonrpc.TailKept)
		if got := string(jsonrpc.IDOf(head, tail)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// The params of a message are read once: they may be large.
func TestParamsAreReadOnce(t *testing.T) {
	m := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
	m.Fields()
	n := testing.AllocsPerRun(10, func() {
		if version, name := jsonrpc.StandsAlone(m); version != "2026-07-28" || name != "a" || jsonrpc.Cancels(m) != "" || m.Fields().Name != "a" {
			t.Errorf("%s, %s", version, name)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
