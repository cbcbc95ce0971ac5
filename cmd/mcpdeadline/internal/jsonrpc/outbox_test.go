package jsonrpc_test

import (
	"bufio"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// The server gets every message whole and in order, whenever it reads, and put does not wait for it.
func TestOutbox(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		first int // messages that are sent before it reads
	}{{"a server that reads", 0}, {"a server that reads late", 300}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			o := jsonrpc.NewOutbox(w, func() { w.Close() })
			o.Now = jsonrpc.WriteNow(w)
			var want []string
			put := func(n int) {
				want = append(want, strings.Repeat("x", n*n)) // from none to more than a pipe holds
				o.Put(&jsonrpc.Message{Raw: []byte(want[len(want)-1])})
			}
			for n := range tc.first {
				put(n)
			}
			got := make(chan []string)
			go func() {
				var all []string
				for lines := bufio.NewReader(r); ; {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						got <- all
						return
					}
					all = append(all, string(bytes.TrimSuffix(line, []byte("\n"))))
				}
			}()
			for n := range 300 {
				put(n)
			}
			o.Close()
			if d := cmp.Diff(want, <-got); d != "" {
				t.Errorf("%.1000s", d)
			}
			o.Put(&jsonrpc.Message{Raw: []byte("late")}) // goes nowhere
		})
	}
}
