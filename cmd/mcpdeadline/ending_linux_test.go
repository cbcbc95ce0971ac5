package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// playHost is a host that keeps the other end of the proxy's stdin open by a process that it has
// started, makes one request, and waits to be killed.
func playHost(args []string) {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	holder := exec.Command("sleep", "600")
	holder.ExtraFiles = []*os.File{write}
	if err := holder.Start(); err != nil {
		panic(err)
	}
	proxy := exec.Command(args[0], args[1:]...)
	proxy.Env = append(proxy.Environ(), asHost+"=", asMain+"=1")
	proxy.Stdin, proxy.Stdout, proxy.Stderr = read, os.Stdout, os.Stderr
	if err := proxy.Start(); err != nil {
		panic(err)
	}
	read.Close()
	if _, err := write.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + "}\n"); err != nil {
		panic(err)
	}
	_ = proxy.Wait()
}

// SPEC 16.1. The proxy and its server end with the host while another process holds stdin open, and
// with a host that is named; they live on if that is switched off.
func TestEndsWithItsHost(t *testing.T) {
	proxy := func(flags ...string) []string { return append(append([]string{self(t)}, flags...), evilArgs(t)...) }
	for _, tc := range []struct {
		name string
		args []string
		ends bool
	}{
		{"directly", proxy(), true},
		{"through sh", append([]string{"sh", "-c", `"$@"; :`, "sh"}, proxy()...), true},
		{"behind another proxy", append([]string{self(t), "--"}, proxy()...), true},
		{"not at all", proxy("-host-pid", "0"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			mark := leftovers.Mark()
			cmd := exec.Command(self(t), tc.args...)
			cmd.Env = append(cmd.Environ(), asHost+"=1", "GORACE=atexit_sleep_ms=0", mark)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, args := range []string{"sleep 600", self(t)} {
					for _, pid := range pidsOf(mark, args) { // the proxy ends by itself once its stdin does
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
				leftovers.None(t, mark)
			})
			// The answer comes from the server, so all of them run.
			var answer json.RawMessage
			if err := json.NewDecoder(out).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			state, err := cmd.Process.Wait()
			if err != nil {
				t.Fatal(state, err)
			}
			others := func() (n int) {
				for _, line := range leftovers.With(mark) {
					if !strings.HasPrefix(line, "sleep") {
						n++
					}
				}
				return n
			}
			if tc.ends {
				eventually(t, "the end of the proxy", func() bool { return others() == 0 })
			} else if time.Sleep(500 * time.Millisecond); others() == 0 {
				t.Error("the proxy has ended")
			}
		})
	}
	t.Run("named", func(t *testing.T) {
		t.Parallel()
		named := exec.Command("sleep", "600")
		if err := named.Start(); err != nil {
			t.Fatal(err)
		}
		h := connect(t, "-host-pid", strconv.Itoa(named.Process.Pid))
		if err := named.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = named.Wait()
		<-h.ended
		if !strings.Contains(h.stderr(), "the host, sleep ("+strconv.Itoa(named.Process.Pid)+"), was killed by a signal") {
			t.Error(h.stderr())
		}
	})
}
