package procgroup_test

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// With HelperTree a launcher that has ended well runs on as what it has started, and one that has failed has failed.
func TestHelperTree(t *testing.T) {
	t.Parallel()
	// The child speaks when the launcher has gone.
	const child = `exec 3<&0; { while kill -0 $$ 2>/dev/null; do :; done; echo ready; cat; } <&3 3<&- & exec 3<&-; exit `
	for code, text := range []string{"0", "3"} {
		cmd := exec.Command("sh", "-c", child+text)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		read, write := io.Pipe()
		cmd.Stdout = write
		p, err := procgroup.Start(t.Context(), cmd, procgroup.HelperTree)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(read)
		if code == 0 {
			for i, want := range []string{"ready", "hello"} {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("%q", lines.Text())
				}
				if i == 0 {
					if _, err := io.WriteString(in, "hello\n"); err != nil {
						t.Error(err)
					}
				}
			}
		} else {
			go func() { _, _ = io.Copy(io.Discard, read) }()
		}
		if code == 0 {
			_ = in.Close()
		}
		res, err := p.Wait()
		_, _ = in.Close(), write.Close()
		if (err == nil) != (code == 0) || res.Contained != procgroup.HelperTree {
			t.Errorf("exit %s: %v, %s", text, err, res.Contained)
		}
	}
}
