package terminal_test

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// SPEC 6.31: what a terminal gets of what is typed, and what it would take for itself is refused. The input always ends,
// and the output goes on then.
func TestTypist(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const stops, quits = "it stops the output", "it makes the processes in the foreground quit"
	for _, tt := range []struct {
		name, input         string
		keys, any           bool
		local, in           uint32 // modes that are set
		want, refused, ends string // the command reads; the errors
	}{
		{name: "a line", input: "a\n", want: "a\n"},
		{name: "a line that is not finished", input: "ab", want: "ab"},
		{name: "a byte that ends programs", input: "a\x1cb", want: "a", refused: "1 0x1c 0 " + quits},
		{name: "a key that ends programs", input: "a\x1cb", keys: true, want: "b"},
		{name: "a byte that stops the output", input: "a\x13b", want: "a", refused: "1 0x13 0 " + stops},
		{name: "a key that stops the output", input: "a\x13b", keys: true, want: "a", refused: "1 0x13 0 " + stops},
		{name: "the same, and the one that lets it go on", input: "a\x13b\x11", keys: true, want: "ab"},
		{name: "the same at any price", input: "a\x13b", keys: true, any: true, want: "ab", ends: "0 0x13 0 " + stops},
		{name: "an interrupt lets the output go on", input: "a\x13\x03b", keys: true, any: true, want: "b"},
		{name: "a character that is taken back", input: "ab\x7fc", keys: true, want: "ac"},
		{name: "a line that is taken back", input: "ab\x15c", keys: true, want: "c"},
		{name: "a quoted key takes nothing back", input: x(3000) + "\x16\x15" + x(2000), keys: true,
			want: x(3000) + "\x15" + x(1094), refused: "4096 0x78 4095 "},
		{name: "a quoted newline does not end the line", input: x(1023) + "\x16\n" + x(4000), keys: true,
			want: x(1023) + "\n" + x(3071), refused: "4096 0x78 4095 "},
		{name: "a quoted end", input: "a\x16", keys: true, want: "a\x04"},
		{name: "an interrupt without a flush", input: x(3000) + "\x03" + x(2000), keys: true, local: unix.NOFLSH,
			want: x(4095), refused: "4096 0x78 4095 "},
		{name: "bytes whose eighth bit is cleared", input: strings.Repeat("\xf8", 5000), keys: true, in: unix.ISTRIP,
			want: x(4095), refused: "4095 0xf8 4095 "},
		{name: "a byte that stops the output without its eighth bit", input: "a\x93b", keys: true, in: unix.ISTRIP,
			want: "a", refused: "1 0x93 0 it clears the eighth bit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			master, slave, err := terminal.Open(terminal.Size{})
			if err != nil {
				t.Skip(err)
			}
			defer slave.Close()
			defer master.Close()
			modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			modes.Lflag |= tt.local
			modes.Iflag |= tt.in
			if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes); err != nil {
				t.Fatal(err)
			}
			typist := terminal.NewTypist(master, func(at int64, b byte, maxLine int, does string) error {
				return fmt.Errorf("%d %#x %d %s", at, b, maxLine, does)
			})
			_, refused := typist.Write(0, []byte(tt.input), tt.keys, tt.any)
			got := fmt.Sprint(refused, ", ", typist.End(0), ", ", typist.Stopped())
			if want := cmp.Or(tt.refused, "<nil>") + ", " + cmp.Or(tt.ends, "<nil>") + ", <nil>"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			late := time.AfterFunc(time.Minute, func() { _ = master.Close() })
			if got, err := io.ReadAll(slave); err != nil || string(got) != tt.want || !late.Stop() {
				t.Errorf("the command has read %q, %v, want %q and the end", got, err, tt.want)
			}
		})
	}
}
