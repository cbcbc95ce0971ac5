//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

const misbehavingGrace = 100 * time.Millisecond

// SPEC 6.11, 3.24: whatever the reader and the writers of the caller do, the call returns in time, and reads and calls nothing any
// more.
func TestMisbehavingReadersAndWriters(t *testing.T) {
	for name, f := range map[string]func(p []byte) (int, error){
		"nothing":  func([]byte) (int, error) { return 0, nil },
		"too much": func(p []byte) (int, error) { return len(p) + 1, nil },
		"negative": func([]byte) (int, error) { return -1, nil },
		"error":    func([]byte) (int, error) { return 0, errors.New("bad") },
		"all, EOF": func(p []byte) (int, error) { return len(p), io.EOF },
	} {
		for end, script := range map[string]Script{
			"its own end": {prints, {Do: Read, N: 9}, sleeps(time.Second), complains, exits(3)},
			"a limit":     {prints, {Do: Read, N: 9}, complains, lasts},
		} {
			for _, where := range []string{"stdin", "stdout", "stderr", "both"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, where, end), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m, cmd := New(script), tool()
						in, w := io.Pipe()
						defer w.Close()
						cmd.Stdin = in
						go func() { _, _ = w.Write([]byte("x")) }()
						switch where {
						case "stdin":
							cmd.Stdin = readerFunc(f)
						case "stdout":
							cmd.Stdout = writerFunc(f)
						case "stderr":
							cmd.Stderr = writerFunc(f)
						case "both":
							w := writerFunc(f)
							cmd.Stdout, cmd.Stderr = &w, &w
						}
						begun := time.Now()
						r, err := procgroup.Run(machine.With(context.Background(), m), cmd, procgroup.Stop{Grace: misbehavingGrace}, limits(2*time.Second, 0))
						if r == nil || err == nil {
							t.Fatal(r, err)
						}
						if late := time.Since(begun) - 2*time.Second; late > misbehavingGrace+time.Second {
							t.Errorf("returned %v after the limit", late)
						}
						if r.Reason == procgroup.Exited && r.ExitCode != 3 && r.ExitCode != 128+int(syscall.SIGPIPE) { // after a writer has failed
							t.Errorf("%+v", r)
						}
						for _, wrong := range m.Off() {
							t.Error(wrong)
						}
					})
				})
			}
		}
	}
}
