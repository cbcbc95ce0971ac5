package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In front of an SDK's server that has its own limits, the stricter side stops a call, and the server
// answers the cancelled call.
func TestRealServer(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "mcpserver.exe") // as Windows wants it
	build := exec.Command("go", "build", "-o", bin, "./mcpserver")
	build.Dir = filepath.Join("..", "..", "examples") // a module of its own
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h := startProxy(t, []string{"HANG_TIMEOUT_MS=2000"}, "-tool", "deaf:idle=1s,grace=1s", "-ping", "30s", "--", bin).initialized()
	if w := h.call("1", "search", `{"root":"`+filepath.ToSlash(t.TempDir())+`","pattern":"x"}`); w.text() != "0 matching lines; searched 0 of 0 files" {
		t.Error(w.raw)
	}
	if w := h.call("2", "hang", `{}`); w.outcome() != "total 124" || !strings.HasPrefix(w.text(), "Tool exceeded wall-clock limit of 2s.") {
		t.Error(w.raw) // the server's, passed on
	}
	if w := h.call("3", "deaf", `{"seconds":600}`); w.outcome() != "idle 124" {
		t.Error(w.raw) // the proxy's
	}
	if w := h.call("4", "approve", `{"action":"x"}`); !w.Result.IsError || !strings.Contains(w.text(), "does not support elicitation") {
		t.Error(w.raw)
	}
	if got := h.got("list_changed"); got != nil {
		t.Errorf("it was started again: %q", got)
	}
}
