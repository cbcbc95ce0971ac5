package proctree

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"time"
)

// startPerl starts a Perl script as a tree, which is killed at the end of the test. in and out are its standard input
// and output.
func startPerl(t *testing.T, kind Kind, script string) (tree Tree, cmd *exec.Cmd, in io.WriteCloser, out io.Reader) {
	t.Helper()
	cmd = exec.Command("perl", "-e", script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	tree, err = Start(context.Background(), cmd, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		tree.Kill(time.Now().Add(10 * time.Second))
		tree.Close()
	})
	return tree, cmd, in, out
}
