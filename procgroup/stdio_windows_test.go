package procgroup_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func ptr(p *uint32) uintptr { return uintptr(unsafe.Pointer(p)) }

// SPEC 6.3: of a flood the last bytes are kept, and the rest is counted.
func TestFlood(t *testing.T) {
	const n = 16 << 20
	r, err := run(t, command("flood", "16777216"), procgroup.Capture{Tail: 1000})
	check(t, r, err, want{})
	if r == nil {
		return
	}
	if o := r.Stdout; o.Total != n || o.Dropped != n-1000 || len(o.Bytes()) != 1000 || !strings.HasSuffix(o.String(), "abcdef") {
		t.Errorf("%d bytes, %d dropped, %d kept", o.Total, o.Dropped, len(o.Bytes()))
	}
}

// A slowWriter takes its time for each chunk.
type slowWriter struct{ bytes.Buffer }

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(300 * time.Millisecond)
	return w.Buffer.Write(p)
}

// SPEC 6.14: a writer that is slow but alive gets everything, whether or not something
// still holds the pipe, and whether or not it may go on.
func TestSlowWriter(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		size int64
		held bool
		opts []procgroup.Option
	}{
		{"flood", []string{"flood", "300000"}, 300_000, false, nil},
		{"held", []string{"tree", "hold", "exit", "0"}, 6, true, nil},
		{"held by orphans", []string{"tree", "hold", "exit", "0"}, 6, true, []procgroup.Option{procgroup.Stop{Orphans: true, Grace: endless}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, pids := family(t, tt.args[0], tt.args[1:]...)
			var w slowWriter
			cmd.Stdout = &w
			r, err := run(t, cmd, append([]procgroup.Option{procgroup.Stop{Grace: endless}}, tt.opts...)...)
			check(t, r, err, want{held: tt.held})
			if r != nil && (r.Stdout.Total != tt.size || w.String() != r.Stdout.String() || r.Unwritten != 0) {
				t.Errorf("%d bytes kept, %d written, %d not", r.Stdout.Total, w.Len(), r.Unwritten)
			}
			for _, pid := range living(pids()) {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
			}
		})
	}
}
