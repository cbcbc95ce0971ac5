//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// Where a command is not started, nothing is left of its StdinPipe, as with os/exec.
func TestStdinPipeOfNothing(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		cmd  *exec.Cmd
		opt  procgroup.Option
	}{
		{"context", ended, exec.Command("true"), nil},
		{"option", context.Background(), exec.Command("true"), procgroup.Stop{Signal: syscall.Signal(0)}},
		{"containment", context.Background(), exec.Command("true"), procgroup.Job},
		{"command", context.Background(), exec.Command("/no/such/command"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := tt.cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			pipe := pipeOf(t, w)
			if n := openEnds(pipe); n != 2 {
				t.Fatalf("%d ends of %s", n, pipe)
			}
			if _, err := procgroup.Start(tt.ctx, tt.cmd, tt.opt); err == nil {
				t.Error("started")
			}
			if n := openEnds(pipe); n > 0 {
				t.Errorf("%d open ends of %s", n, pipe)
			}
			if _, err := w.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("writing: %v", err)
			}
		})
	}
}

// pipeOf is what /proc/self/fd has for the pipe of w.
func pipeOf(t *testing.T, w io.Writer) string {
	t.Helper()
	info, err := w.(interface{ Stat() (fs.FileInfo, error) }).Stat()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("pipe:[%d]", info.Sys().(*syscall.Stat_t).Ino)
}

// openEnds counts the descriptors of one pipe. The count of all open files is not that of one
// test: what an earlier one has left to end by itself, such as a command of Attach, opens some too.
func openEnds(pipe string) int {
	return countOpen(func(what string) bool { return what == pipe })
}
