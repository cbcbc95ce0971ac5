package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/examples/internal/leftovers"
)

// A server that ends is started again and initialised as before; what was under way is answered,
// and the host is told that lists may have changed.
func TestServerEnds(t *testing.T) {
	for _, tool := range []string{"exit", "kill"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			h := connect(t)
			h.await(h.ask("1", "logging/setLevel", `{"level":"debug"}`), "setLevel")
			h.await(h.ask("2", "resources/subscribe", `{"uri":"x:y"}`), "subscribe")
			before := h.call("3", "pid", `{}`)
			hanging := h.start("4", "hang", `{}`, "")
			asking := h.start("5", "ask", `{}`, "")
			other := h.ask("6", "no/answer", `{}`)
			eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
			w := h.call("7", tool, `{}`)
			for _, w := range []wire{w, h.await(hanging, "hang"), h.await(asking, "ask")} {
				if !w.Result.IsError || !strings.HasPrefix(w.text(), "the server has ended: ") ||
					!strings.Contains(w.text(), "The call was not repeated, and may have had an effect.") {
					t.Error(w.raw)
				}
			}
			if tool == "exit" && (!strings.Contains(w.text(), "exit status 5") || !strings.Contains(w.text(), "goodbye")) {
				t.Error(w.raw)
			}
			if w := h.await(other, "no/answer"); w.Error == nil || !strings.HasPrefix(w.Error.Message, "the server has ended: ") {
				t.Error(w.raw)
			}
			eventually(t, "word of the lists", func() bool { return len(h.got("list_changed")) == 2 })
			after := h.call("8", "pid", `{}`)
			if before.text() == after.text() || after.text() == "" {
				t.Errorf("%s and %s", before.raw, after.raw)
			}
			// The host has nothing to do with it.
			if got := h.got("mcpproxy"); got != nil {
				t.Errorf("%q", got)
			}
			seen := h.call("9", "seen", `{}`)
			if d := cmp.Diff("initialize notifications/initialized logging/setLevel resources/subscribe tools/call tools/call", seen.text()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"the server has ended","requestId":1}}`}, h.got("notifications/cancelled")); d != "" {
				t.Error(d)
			}

			// The new server's first question has the id of the old one's. The answer to that one
			// comes late, and is not taken for this one's.
			asking = h.start("10", "ask", `{}`, "")
			eventually(t, "another question", func() bool { return len(h.got("elicitation/create")) == 2 })
			h.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"old"}}`)
			question := h.got("elicitation/create")[1]
			id, _, _ := strings.Cut(strings.SplitN(question, `"id":`, 2)[1], `,`)
			h.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"new"}}`)
			if w := h.await(asking, "ask"); w.text() != `{"action":"new"}` {
				t.Errorf("%s\n%s", question, w.raw)
			}
		})
	}
}

// A server that answers neither a cancelled call nor a ping is killed with all that it has
// started. Others' calls are answered then, and what comes meanwhile is served by the next one.
func TestServerHangs(t *testing.T) {
	for _, how := range []string{"deaf", "SIGSTOP"} {
		t.Run(how, func(t *testing.T) {
			if how == "SIGSTOP" && runtime.GOOS == "windows" {
				t.Skip("there is no such signal there")
			}
			t.Parallel()
			h := connect(t, "-tool", "deaf:idle=1s", "-grace", "500ms", "-ping", "500ms", "-alive", "progress")
			h.start("1", "spawn", `{}`, "") // a child of its own
			eventually(t, "the child", func() bool {
				return strings.Contains(strings.Join(leftovers.With(h.mark), "\n"), " sleeper") || runtime.GOOS != "linux"
			})
			pid, err := strconv.Atoi(h.call("2", "pid", `{}`).text())
			if err != nil {
				t.Fatal(err)
			}
			hanging := h.start("3", "hang", `{}`, "")
			if how == "SIGSTOP" {
				stop(t, pid)
			}
			w := h.call("4", "deaf", `{}`)
			if w.outcome() != "idle 124" {
				t.Error(w.raw)
			}
			later := h.start("5", "pid", `{}`, "")
			if w := h.await(hanging, "hang"); !w.Result.IsError || !strings.Contains(w.text(), "it answered neither a cancelled call nor a ping for 500ms") {
				t.Error(w.raw)
			}
			// It was sent to the one that is no more, and not repeated.
			if w := h.await(later, "pid"); !w.Result.IsError {
				t.Error(w.raw)
			}
			if w := h.call("6", "pid", `{}`); w.Result.IsError || w.text() == strconv.Itoa(pid) {
				t.Error(w.raw)
			}
			if runtime.GOOS == "linux" {
				eventually(t, "the child's end", func() bool { return !strings.Contains(strings.Join(leftovers.With(h.mark), "\n"), " sleeper") })
			}
		})
	}
}

// A call that was sent while the server is started again is served by the next one, and one
// that is cancelled meanwhile never gets there.
func TestBetweenServers(t *testing.T) {
	t.Parallel()
	h := startProxy(t, []string{"EVIL_START=1s"}, evilArgs(t)...).initialized()
	h.call("1", "exit", `{}`)
	kept := h.start("2", "seen", `{}`, "")
	h.start("3", "exit", `{}`, "")
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if w := h.await(kept, "seen"); w.text() != "initialize notifications/initialized tools/call" {
		t.Error(w.raw)
	}
	if w := h.call("4", "echo", `{"text":"x"}`); w.text() != "x" {
		t.Error(w.raw)
	}
}

// A server that cannot start gives its stderr, and so does the answer to the host.
func TestCannotStart(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  []string
		says []string
		code int
	}{
		{"not found", []string{"--", "/no/such/command"}, nil, []string{"the server cannot be started", "/no/such/command", "no such file"}, 127},
		{"ends at once", evilArgs(t), []string{"EVIL_END=no key: set API_KEY"}, []string{"the server cannot be started", "exit status 3", "no key: set API_KEY"}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := startProxy(t, tc.env, tc.args...)
			w := h.await(h.ask("0", "initialize", initialize), "initialize")
			if w.Error == nil {
				t.Fatal(w.raw)
			}
			<-h.ended
			for _, text := range tc.says {
				if !strings.Contains(h.stderr(), text) || !strings.Contains(w.Error.Message, text) {
					t.Errorf("want %q in\n%s\nand\n%s", text, w.raw, h.stderr())
				}
			}
			if code := h.cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

// Nothing is left, whoever is killed. (The end of each test looks for the rest.)
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it takes the helper of procgroup")
	}
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
		cmd.SysProcAttr = &syscall.SysProcAttr{}
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

// pids are those of processes with a mark whose arguments begin with a text.
func pids(t *testing.T, mark, args string) (found []int) {
	t.Helper()
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
	if found == nil {
		t.Errorf("no process %q", args)
	}
	return found
}

func stop(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(0)
}
