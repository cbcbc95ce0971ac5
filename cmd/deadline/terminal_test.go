//go:build linux

package main

import (
	"io"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// onTerminal runs a script on a terminal of its own and returns everything that it showed.
// When it shows a prompt, the text of typed with that key is typed.
func onTerminal(t *testing.T, bin, script string, typed map[string]string) (shown string, exit string) {
	t.Helper()
	cmd, mark := prepare(t, bin, script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	terminal, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 100}, cmd.SysProcAttr)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	var all strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := terminal.Read(buf)
			all.Write(buf[:n])
			for prompt, text := range typed {
				if strings.Contains(all.String(), prompt) {
					delete(typed, prompt)
					_, _ = io.WriteString(terminal, text)
				}
			}
			if err != nil {
				return // EIO, when the last user of the terminal has gone
			}
		}
	}()
	_ = cmd.Wait()
	harness.None(t, mark)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the terminal is still in use")
		terminal.Close()
		<-ended
	}
	return all.String(), cmd.ProcessState.String()
}

// shown returns what GNU timeout does on a terminal.
func (r *recording) shown(t *testing.T, name, script string, typed map[string]string) result {
	t.Helper()
	if r.dir == "" {
		want, known := r.Shown[name]
		if !known {
			t.Fatal("not recorded")
		}
		return want
	}
	shown, exit := onTerminal(t, r.dir, either(script, 0), maps.Clone(typed))
	// GNU's handler exits with 130 where the child was fast and its own fork has not returned yet.
	for try := 0; exit == "exit status 130" && try < 20; try++ {
		shown, exit = onTerminal(t, r.dir, either(script, 0), maps.Clone(typed))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Shown[name] = result{exit, strings.ReplaceAll(shown, "^C", ""), ""}
	return r.Shown[name]
}

// TestTerminalLikeGNU: on a terminal too, the program is GNU timeout.
func TestTerminalLikeGNU(t *testing.T) {
	t.Parallel()
	theirs := gnu()
	our := ours(t)
	for _, c := range []struct {
		name, script string
		typed        map[string]string
	}{
		{"it is one", "exec timeout 60 sh -c 'test -t 0 && test -t 1 && test -t 2 && echo yes'", nil},
		// The kernel sends the signal, then discards output, then echoes, and may be held up in between.
		{"Ctrl-C", "exec timeout 60 sh -c 'trap \"trap : INT; {sleep 3|sleep .3}; echo caught; exit 7\" INT; echo ready; sleep 1 & wait'",
			map[string]string{"ready": "\x03"}},
		// No shell, which between its echo and the next program ends in a way of its own.
		{"Ctrl-C, default", "echo ready >r; exec timeout 60 cat r -", map[string]string{"ready": "\x03"}},
		{"read from the prompt", "exec timeout 60 sh -c 'echo ready; read a; echo got $a'", map[string]string{"ready": "word\n"}},
		{"read from a script", "timeout -v {1|.1} cat; echo $?", nil},
		{"read in the foreground", "timeout --foreground 60 sh -c 'echo ready; read a; echo got $a'; echo $?",
			map[string]string{"ready": "word\n"}},
		{"write from a script", "stty tostop; timeout {1|.1} /bin/echo no; echo $?", nil},
		{"stopped and continued", "set -m; timeout 60 sh -c 'kill -TSTP 0; exit 3'; echo $?; fg; echo $?", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := theirs.shown(t, c.name, c.script, c.typed)
			got, gotExit := onTerminal(t, our, either(c.script, 1), maps.Clone(c.typed))
			t.Logf("%q, %s", got, gotExit)
			if got = strings.ReplaceAll(got, "^C", ""); want.Stdout != got || want.Exit != gotExit {
				t.Errorf("%s\nGNU  %q, %s\nours %q, %s", c.script, want.Stdout, want.Exit, got, gotExit)
			}
		})
	}
}

// TestForward: who ends the program ends the command, and a kill that -k promised comes.
func TestForward(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for _, c := range []struct {
		name, script string
		signal       os.Signal
		want         string
	}{
		{"TERM", "exec deadline 60 sh -c 'echo ready; exec sleep 60'", syscall.SIGTERM, "signal: terminated"},
		{"HUP", "exec deadline --idle 60 60 sh -c 'echo ready; exec sleep 60'", syscall.SIGHUP, "signal: hangup"},
		{"INT, handled", "exec deadline --idle 60 60 sh -c 'trap \"exit 4\" INT; echo ready; sleep 1 & wait'", syscall.SIGINT, "exit status 4"},
		{"in the foreground", "exec deadline -f 60 sh -c 'echo ready; exec sleep 60'", syscall.SIGINT, "signal: interrupt"},
		{"kill", "exec deadline -k .2 0 sh -c 'trap \"\" TERM; echo ready; sleep 60; sleep 60'", syscall.SIGTERM, "signal: killed"},
		{"idle kill", "exec deadline -k .2 --idle 50 0 sh -c 'trap \"\" TERM; echo ready; sleep 60; sleep 60'", syscall.SIGTERM, "signal: killed"},
		{"ALRM", "exec deadline --idle 50 0 sh -c 'echo ready; sleep 60; sleep 60'", syscall.SIGALRM, "exit status 124"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd, mark := prepare(t, bin, c.script)
			harness.Start(t, cmd, "ready\n")
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			harness.None(t, mark)
		})
	}
}
