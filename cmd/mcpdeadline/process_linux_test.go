package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What only real processes show. What the proxy does with its server is tested on a virtualMachine.

// ends waits until processes have ended.
func ends(t *testing.T, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		harness.Eventually(t, "the end of "+pid, func() bool {
			env, _ := os.ReadFile("/proc/" + pid + "/environ") // a zombie has none
			return pid != "" && len(env) == 0
		})
	}
}

// A signal ends the program, even while a file that a flag names does not open.
func TestFileThatDoesNotOpen(t *testing.T) {
	for _, flag := range []string{"-config", "-log"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // lets a call go on that still waits
				if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
					f.Close()
				}
			})
			ctx, signal := context.WithCancel(t.Context())
			signal()
			code := make(chan int, 1)
			go func() {
				code <- machine.run(ctx, []string{flag, pipe, "-host-pid", "0", "--", "x"}, strings.NewReader(""), io.Discard, io.Discard)
			}()
			select {
			case code := <-code:
				if code != exitUsage {
					t.Errorf("exit code %d", code)
				}
			case <-time.After(10 * time.Second):
				t.Error("it still waits")
			}
		})
	}
}

// spawned returns the pids of the server and of a process that it has started.
func spawned(t *testing.T, h *client) (server, its string) {
	t.Helper()
	h.start(`"spawn"`, "spawn", `{}`, "")
	harness.Eventually(t, "the server's process", func() bool {
		_, rest, found := strings.Cut(h.stderr(), "evil: started ")
		its, _, _ = strings.Cut(rest, "\n")
		return found && its != ""
	})
	return h.call(`"pid"`, "pid", `{}`).text(), its
}

// SPEC 3.11: a signal answers what is under way, and ends the server with what it has started.
func TestSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			h := startReal(t, nil, evilArgs(t)...).initialized()
			server, its := spawned(t, h)
			answer := h.start("1", "hang", `{}`, "")
			h.call("2", "echo", `{}`)
			if err := h.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if w := h.await(answer, "hang"); w.text() != "Tool was aborted: the server is shutting down" || w.outcome() != "aborted 130" {
				t.Error(w.raw)
			}
			if <-h.ended; h.code != 0 {
				t.Errorf("exit code %d", h.code)
			}
			ends(t, server, its)
		})
	}
}

// SPEC 16.1: no process is left of a proxy that is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := startReal(t, nil, evilArgs(t)...).initialized()
	server, its := spawned(t, h)
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ends(t, server, its)
}

// The stderr of a server that cannot start is in the answer to the host, and its exit code is the proxy's.
func TestCannotStart(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  []string
		says []string
		code int
	}{
		{"not found", []string{"--", "/no/such/command"}, nil, []string{"/no/such/command", "no such file"}, 127},
		{"ends at once", evilArgs(t), []string{"EVIL_END=no key: set API_KEY"}, []string{"exit status 3", "no key: set API_KEY"}, 3},
		{"prints what is no message", []string{"--", "echo", "hello"}, nil, []string{"exit status 0"}, 1}, // SPEC 16.3
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := startReal(t, tc.env, tc.args...)
			w := h.await(h.ask("0", "initialize", initialize), "initialize")
			if <-h.ended; w.Error == nil || h.code != tc.code {
				t.Fatalf("%s, exit code %d", w.raw, h.code)
			}
			for _, text := range append(tc.says, "cannot start the server") {
				if !strings.Contains(h.stderr(), text) || !strings.Contains(w.Error.Message, text) {
					t.Errorf("want %q in\n%s\nand\n%s", text, w.raw, h.stderr())
				}
			}
		})
	}
}

// A child keeps the contract of the virtual one.
func TestChild(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(stop context.CancelCauseFunc, c server.Child, in io.Writer, closed <-chan struct{})
		tail string
		err  string
	}{
		{"its stdin is closed", func(_ context.CancelCauseFunc, _ server.Child, in io.Writer, _ <-chan struct{}) {
			_ = in.(io.Closer).Close()
		}, "evil: stdin closed", "<nil>"},
		{"it is asked to end", func(_ context.CancelCauseFunc, c server.Child, _ io.Writer, _ <-chan struct{}) { c.Terminate() }, "", "signal: terminated"},
		{"it is killed", func(stop context.CancelCauseFunc, _ server.Child, _ io.Writer, _ <-chan struct{}) {
			stop(errors.New("too old"))
		}, "", "too old"},
		{"it ends badly", func(_ context.CancelCauseFunc, _ server.Child, in io.Writer, _ <-chan struct{}) {
			_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"exit"}}`+"\n")
		}, "goodbye", "exit status 5"},
		{"it closes its stdout", func(stop context.CancelCauseFunc, _ server.Child, in io.Writer, closed <-chan struct{}) {
			_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"shut"}}`+"\n")
			<-closed
			stop(errors.New("unheard"))
		}, "", "unheard"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancelCause(t.Context())
			said, closed := make(chan string, 100), make(chan struct{})
			c, err := machine.start(ctx, server.Launch{
				Args:   evilArgs(t)[1:],
				Stdout: writerFunc(func(p []byte) (int, error) { said <- string(p); return len(p), nil }),
				Stderr: io.Discard, Closed: func() { close(closed) },
			})
			if err != nil {
				t.Fatal(err)
			}
			in, now := c.Stdin()
			ask := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
			if n := now([]byte(ask)); n != len(ask) {
				t.Errorf("%d bytes written", n)
			}
			if got := <-said; got != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
				t.Error(got)
			}
			o, err := c.Observe(ctx, procgroup.Activity{})
			if err != nil {
				t.Fatal(err)
			}
			if list := o.Tree(); len(list.Processes) == 0 {
				t.Error("nothing is observed")
			}
			o.Stop()
			tc.do(stop, c, in, closed)
			tail, err := c.Wait()
			if stopped := (*timeout.Error)(nil); errors.As(err, &stopped) {
				err = stopped.Cause
			}
			if !strings.Contains(tail, tc.tail) || fmt.Sprint(err) != tc.err {
				t.Errorf("%q, %v", tail, err)
			}
			<-closed
			_ = in.Close()
		})
	}
}

// SPEC 16.7: a launcher that ends well while its server runs is no end of the server.
func TestLauncherEnds(t *testing.T) {
	t.Parallel()
	// The server starts when the launcher has gone.
	script := `exec 3<&0; { while kill -0 $$ 2>/dev/null; do :; done; exec "$0" evil; } <&3 3<&- & exec 3<&-; exit 0`
	h := startReal(t, nil, "--", "sh", "-c", script, self(t)).initialized()
	first := h.call("1", "pid", `{}`).text()
	if again := h.call("2", "pid", `{}`).text(); again != first || strings.Count(h.stderr(), "evil: started\n") != 1 {
		t.Errorf("%s and %s: %s", first, again, h.stderr())
	}
	// Its end is noticed, and it is started again.
	if w := h.call("3", "exit", `{}`); !w.Result.IsError || !strings.Contains(w.text(), "the server ended") {
		t.Error(w.raw)
	}
	if w := h.call("4", "echo", `{"text":"again"}`); w.text() != "again" {
		t.Error(w.raw)
	}
}

// The program listens at the address of -http, serves a host over HTTP, and shows a call on its page.
func TestListens(t *testing.T) {
	t.Parallel()
	h := startReal(t, nil, append([]string{"-http", ":0", "-inspect", ":0"}, evilArgs(t)...)...)
	address := func(line string) (url string) {
		harness.Eventually(t, line, func() bool {
			found := regexp.MustCompile(line + `: ?(?:on )?(\S+)\n|` + line + ` (\S+)\n`).FindStringSubmatch(h.stderr())
			if found != nil {
				url = found[1] + found[2]
			}
			return found != nil
		})
		return url
	}
	url, page := address("listening on"), address("running calls")
	get := func() string {
		res, err := http.Get(page + "?format=text")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	get() // recording begins with the first look
	_, events := post(t.Context(), t, http.DefaultClient, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang",`+standsAloneMeta+`}}`)
	harness.Eventually(t, "the call", func() bool { return strings.Contains(get(), "hang") })
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	for e := range events {
		if e.Method == "" && e.text() != "Tool was aborted: the server is shutting down" {
			t.Error(e.raw)
		}
	}
	if <-h.ended; h.code != 0 {
		t.Errorf("exit code %d", h.code)
	}
}

// playHost is a host that keeps the other end of the proxy's stdin open by a process that it has
// started, makes one request, and waits to be killed.
func playHost() {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	holder := exec.Command("sleep", "600")
	holder.ExtraFiles = []*os.File{write}
	if err := holder.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, holder.Process.Pid)
	proxy := exec.Command(os.Args[1], os.Args[2:]...)
	proxy.Env = harness.Command("proxy").Env
	proxy.Stdin, proxy.Stdout, proxy.Stderr = read, os.Stdout, os.Stderr
	if err := proxy.Start(); err != nil {
		panic(err)
	}
	read.Close()
	for _, line := range []string{`"id":1,"method":"initialize","params":` + initialize, `"id":2,"method":"tools/call","params":{"name":"pid"}`} {
		if _, err := write.WriteString(`{"jsonrpc":"2.0",` + line + "}\n"); err != nil {
			panic(err)
		}
	}
	_ = proxy.Wait()
}

// SPEC 16.1. The proxy and its server end with the host while another process holds stdin open; they live on if that is
// switched off. SPEC 17.1: they end with a launcher, whatever the host's pid is.
func TestEndsWithItsHost(t *testing.T) {
	proxy := func(flags ...string) []string { return append(append([]string{self(t)}, flags...), evilArgs(t)...) }
	for _, tc := range []struct {
		name string
		args []string
		ends bool
	}{
		{"directly", proxy(), true},
		{"behind another proxy", append([]string{self(t), "--", "env", "HARNESS_MODE=proxy"}, proxy()...), true},
		{"a launcher", append([]string{"sh", "-c", `TOOLDEADLINE_LAUNCHER=$PPID "$@"; :`, "sh"}, proxy("-host-pid", "0")...), true},
		{"not at all", proxy("-host-pid", "0"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := harness.Command("host", tc.args...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			answers := json.NewDecoder(out)
			var holder int
			var answer wire
			for _, to := range []any{&holder, &answer, &answer} { // the last is the server's, so all of them run
				if err := answers.Decode(to); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := cmd.Process.Wait(); err != nil {
				t.Fatal(err)
			}
			if !tc.ends { // but at the end of stdin
				if err := syscall.Kill(pidOf(answer.text()), 0); err != nil {
					t.Error("the server has ended")
				}
				_ = syscall.Kill(holder, syscall.SIGKILL)
			}
			ends(t, answer.text())
			_ = syscall.Kill(holder, syscall.SIGKILL)
			ends(t, strconv.Itoa(holder))
		})
	}
}

func pidOf(text string) int {
	pid, _ := strconv.Atoi(text)
	return pid
}

// SPEC 18.2: what a server says on its socket counts for the executions that attend.
func TestProcessNotifies(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c, err := machine.start(ctx, server.Launch{Args: evilArgs(t)[1:], Stdout: io.Discard, Stderr: io.Discard, Closed: func() {}, Notify: true})
	if err != nil {
		t.Fatal(err)
	}
	in, _ := c.Stdin()
	err = timeout.Run(ctx, func(ctx context.Context) error {
		c.Attend(ctx)
		_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"notify","arguments":{"ms":60000}}}`+"\n")
		harness.Eventually(t, "a heartbeat of the server", func() bool { return heartbeat.FromContext(ctx).Count() > 0 })
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
	stop(errors.New("heard"))
	_, _ = c.Wait()
}
