package procgroup_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func ptr(p *uint32) uintptr { return uintptr(unsafe.Pointer(p)) }

// Case 10, SPEC 6.3: of a flood the last bytes are kept, and the rest is counted.
func TestFlood(t *testing.T) {
	const n = 16 << 20
	r, err := within(t, longLimit, command("flood", "16777216"), procgroup.WithMaxOutput(1000))
	check(t, r, err, want{})
	if r == nil {
		return
	}
	if o := r.Stdout; o.Total != n || o.Dropped != n-1000 || len(o.Bytes()) != 1000 || !strings.HasSuffix(o.String(), "abcdef") {
		t.Errorf("%d bytes, %d dropped, %d kept", o.Total, o.Dropped, len(o.Bytes()))
	}
}

// Case 18: input reaches the command; a command that does not read it and a reader that
// blocks do no harm.
func TestStdin(t *testing.T) {
	text := strings.Repeat("line\n", 50000)
	cmd := command("echo")
	cmd.Stdin = strings.NewReader(text)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	r, err := within(t, longLimit, cmd)
	check(t, r, err, want{})
	if stdout.String() != text {
		t.Errorf("%d bytes came back of %d", stdout.Len(), len(text))
	}

	cmd = command("exit", "0")
	cmd.Stdin = strings.NewReader(text)
	r, err = within(t, time.Second, cmd)
	check(t, r, err, want{})

	reader, writer := io.Pipe()
	defer writer.Close()
	cmd = command("exit", "0")
	cmd.Stdin = reader
	r, err = within(t, time.Second, cmd)
	check(t, r, err, want{})
}
