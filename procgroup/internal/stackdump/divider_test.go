package stackdump

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	goStacks   = "SIGQUIT: quit\nPC=0x1 m=0\n\ngoroutine 1\n"
	javaStacks = "2026-11-25 05:04:07\nFull thread dump OpenJDK\n\n\"main\"\n\nJNI global refs: 7\n\nHeap\n garbage-first\n  class space\n\n"
)

// SPEC 6.22: stacks are distinguished from the output the same way however they
// arrive.
func TestDivider(t *testing.T) {
	for _, tt := range []struct{ name, text, output, stacks string }{
		{"none", "some output\nSIGQUIT: quit\n", "some output\nSIGQUIT: quit\n", ""},
		{"Go", "half" + goStacks + "exit status 2\n", "half", goStacks + "exit status 2\n"},
		{"Go on a terminal", "a\r\nSIGQUIT: quit\r\nPC=0x1\r\n", "a\r\n", "SIGQUIT: quit\r\nPC=0x1\r\n"},
		{"Python", "a\nFatal Python error: Aborted\n\nThread", "a\n", "Fatal Python error: Aborted\n\nThread"},
		{"Java", "tick\n" + javaStacks + "tock\n", "tick\ntock\n", javaStacks},
		{"Java twice", javaStacks + "x" + javaStacks, "x", javaStacks + javaStacks},
		{"Java without the time", "x Full thread dump y", "x ", "Full thread dump y"},
		{"Go within Java", javaStacks[:60] + goStacks + "\nHeap\n\nmore", "", javaStacks[:60] + goStacks + "\nHeap\n\nmore"},
		{"Go after Java", javaStacks + "x" + goStacks, "x", javaStacks + goStacks},
		{"a time", "2026-11-25 05:04:07\nand nothing", "2026-11-25 05:04:07\nand nothing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.text); size++ {
				output, stacks := divideBy(tt.text, size)
				if diff := cmp.Diff([]string{tt.output, tt.stacks}, []string{output, stacks}); diff != "" {
					t.Fatalf("in pieces of %d bytes (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func divideBy(text string, size int) (output, stacks string) {
	var d Divider
	for len(text) > 0 {
		n := min(size, len(text))
		o, s := d.Add([]byte(text[:n]))
		output, stacks, text = output+string(o), stacks+string(s), text[n:]
	}
	for range 2 { // at the end of the stream, and of the separation
		o, s := d.End()
		output, stacks = output+string(o), stacks+string(s)
	}
	return output, stacks
}

// No byte is lost or doubled.
func FuzzDivider(f *testing.F) {
	f.Add("tick\n"+javaStacks+goStacks, 7)
	f.Add("2026-11-25 05:04:07\r\nFull thread dump \nHeap\r\n\r\nx", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		output, stacks := divideBy(text, max(size, 1))
		whole, wholeStacks := divideBy(text, len(text)+1)
		if len(output)+len(stacks) != len(text) || output != whole || stacks != wholeStacks {
			t.Errorf("%q, %q; in one piece %q, %q", output, stacks, whole, wholeStacks)
		}
	})
}
