package main

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// A line that is no message ends the server over stdio, and so does one over the SDK's
// limit of 16 MiB, as the README says. Nothing is left running.
func TestBadLine(t *testing.T) {
	ping := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"x":"`, `"}}}`
		return head + strings.Repeat("a", size-len(head)-len(tail)) + tail
	}
	const most = 16 << 20
	for _, tt := range []struct {
		name, line string
		code       int
		says       string
	}{
		{"an empty line", "", 0, ""},
		{"as long as may be", ping(most), 0, ""},
		{"a byte more", ping(most + 1), 1, "inbound JSON-RPC frame exceeded the configured maximum line length"},
		{"no JSON", "hello", 1, "invalid character 'h'"},
		{"JSON, but no message", `{"hello":1}`, 1, "invalid message version tag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, in := talk(t, nil)
			if _, err := io.WriteString(in, tt.line+"\n"); err != nil && tt.code == 0 {
				t.Error(err) // a server that has ended reads no more
			}
			if tt.code == 0 {
				in.Close()
			}
			code := 0
			var exit *exec.ExitError
			if err := p.cmd.Wait(); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Error(err)
			}
			if code != tt.code || !strings.Contains(p.String(), "mcpserver: "+tt.says) && tt.says != "" {
				t.Errorf("exit code %d, want %d and %q\n%s", code, tt.code, tt.says, p)
			}
			leftovers.None(t, p.mark)
			if n := strings.Count(p.String(), " exit_code=130"); n != 1 {
				t.Errorf("%d calls were aborted\n%s", n, p)
			}
		})
	}
}
