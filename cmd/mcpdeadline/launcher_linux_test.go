package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// SPEC 17.1: a launcher that is killed takes the proxy and its server with it, whatever the host's pid is.
func TestEndsWithLauncher(t *testing.T) {
	t.Parallel()
	mark := leftovers.Mark()
	args := append([]string{"-c", `TOOLDEADLINE_LAUNCHER=$$ "$@"; :`, "sh", self(t), "-host-pid", "0"}, evilArgs(t)...)
	cmd := exec.Command("sh", args...)
	cmd.Env = append(cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", mark)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":%s}`+"\n", initialize); err != nil {
		t.Error(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	leftovers.None(t, mark)
	_ = cmd.Wait()
}
