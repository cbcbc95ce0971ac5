//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// What a command reads from is a reader, its StdinPipe or a file; what it writes goes to its own writers, too.
func TestStdinAndWriters(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("hello\n", 100_000)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]func(cmd *exec.Cmd) (after func() error, err error){
		"reader": func(cmd *exec.Cmd) (func() error, error) { cmd.Stdin = strings.NewReader(text); return nil, nil },
		"StdinPipe": func(cmd *exec.Cmd) (func() error, error) {
			w, err := cmd.StdinPipe()
			return func() error {
				_, err := io.WriteString(w, text)
				return errors.Join(err, w.Close())
			}, err
		},
		"file": func(cmd *exec.Cmd) (func() error, error) {
			f, err := os.Open(file)
			cmd.Stdin = f
			return f.Close, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", "cat; echo err >&2")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			after, err := from(cmd)
			if err != nil {
				t.Fatal(err)
			}
			p, err := procgroup.Start(context.Background(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			if after != nil {
				if err := after(); err != nil {
					t.Error(err)
				}
			}
			r, err := p.Wait()
			if err != nil || r.Stdout.String() != text || stdout.String() != text || stderr.String() != "err\n" || r.Unwritten != 0 {
				t.Errorf("%v, %d bytes came back of %d, %d written, stderr %q", err, r.Stdout.Total, len(text), stdout.Len(), &stderr)
			}
		})
	}
}

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
