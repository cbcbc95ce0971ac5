package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// killedFor is why a server was killed. On a busy machine it takes longer than the time that was set.
var killedFor = regexp.MustCompile(`it answered neither a cancelled call nor a ping for (500ms|[1-9]\d*(\.5)?s)`)

// A server that answers neither a cancelled call nor a ping is killed with everything that it has
// started. Its other calls are answered then, and later requests go to the next run.
func TestServerHangs(t *testing.T) {
	for _, how := range []string{"deaf", "SIGSTOP"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := connect(t, "-tool", "deaf:idle=1s", "-grace", "500ms", "-ping", "500ms", "-alive", "progress")
			h.start("1", "spawn", `{}`, "") // a child of its own
			eventually(t, "the child", func() bool {
				return strings.Contains(strings.Join(leftovers.With(h.mark), "\n"), " sleeper")
			})
			pid, err := strconv.Atoi(h.call("2", "pid", `{}`).text())
			if err != nil {
				t.Fatal(err)
			}
			hanging := h.start("3", "hang", `{}`, "")
			if how == "SIGSTOP" {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			w := h.call("4", "deaf", `{}`)
			if w.outcome() != "idle 124" {
				t.Error(w.raw)
			}
			later := h.start("5", "pid", `{}`, "")
			if w := h.await(hanging, "hang"); !w.Result.IsError || !killedFor.MatchString(w.text()) {
				t.Error(w.raw)
			}
			// It has waited for the next one, and is not lost with this one.
			if w := h.await(later, "pid"); w.Result.IsError || w.text() == strconv.Itoa(pid) {
				t.Error(w.raw)
			}
			if w := h.call("6", "pid", `{}`); w.Result.IsError || w.text() == strconv.Itoa(pid) {
				t.Error(w.raw)
			}
			eventually(t, "the child's end", func() bool { return !strings.Contains(strings.Join(leftovers.With(h.mark), "\n"), " sleeper") })
		})
	}
}

// No process is left, whichever is killed. (The end of each test looks for the rest.)
func TestKilled(t *testing.T) {
	t.Run("the proxy", func(t *testing.T) {
		t.Parallel()
		h := connect(t)
		h.start("1", "spawn", `{}`, "")
		eventually(t, "the child", func() bool { return len(leftovers.With(h.mark)) >= 4 })
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-h.ended
		leftovers.None(t, h.mark)
	})
	t.Run("the host", func(t *testing.T) {
		t.Parallel()
		// The host is a shell whose pipe is the proxy's stdin.
		mark := leftovers.Mark()
		args := append([]string{"-c", `(echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"spawn"}}'; exec sleep 600) | "$@"`, "sh", self(t)}, evilArgs(t)...)
		cmd := exec.Command("sh", args...)
		cmd.Env = append(cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the child", func() bool { return strings.Contains(strings.Join(leftovers.With(mark), "\n"), " sleeper") })
		for _, pid := range pids(t, mark, "sleep 600") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		leftovers.None(t, mark)
		_ = cmd.Wait()
	})
}

// pids returns the ids of the processes with the mark whose command lines begin with args.
func pids(t *testing.T, mark, args string) []int {
	t.Helper()
	found := pidsOf(mark, args)
	if found == nil {
		t.Errorf("no process %q", args)
	}
	return found
}

// pidsOf is pids where there may be none.
func pidsOf(mark, args string) (found []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.Contains("\x00"+string(env), "\x00"+mark+"\x00") && strings.HasPrefix(strings.ReplaceAll(string(line), "\x00", " "), args) {
			found = append(found, pid)
		}
	}
	return found
}
