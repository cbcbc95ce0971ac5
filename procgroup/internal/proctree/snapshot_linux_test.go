package proctree

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// SPEC 6.12: the list shows the arguments of a process, or its name if it has none.
func TestSplitArgs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                  nil,
		"\x00":              nil,
		"\x00\x00\x00":      nil, // as of a program that sets its title to nothing
		"sh\x00-c\x00:\x00": {"sh", "-c", ":"},
		"sh\x00\x00x\x00":   {"sh", "", "x"},
		"title\x00\x00\x00": {"title"},
		strings.Repeat("x", maxArgs-1) + "ä\x00": {strings.Repeat("x", maxArgs-1) + "…"},
	} {
		if diff := cmp.Diff(want, splitArgs([]byte(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// SPEC 6.23: a process that ends while it is described is not in the list, where it would have no name.
func TestDescribe(t *testing.T) {
	cmd := exec.Command("sleep", "120")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := procfs.Unhurried()
	p, ok := r.Process(cmd.Process.Pid)
	if !ok {
		t.Fatal("not there")
	}
	if d := describe(r, &p, false); d.Pid != p.PID || len(d.Args) != 1 || len(d.Args[0]) < 3 {
		t.Errorf("%+v", d)
	}
	_, _ = cmd.Process.Kill(), cmd.Wait()
	if d := describe(r, &p, true); d.Pid != 0 {
		t.Errorf("%+v, although it has ended", d)
	}
}
