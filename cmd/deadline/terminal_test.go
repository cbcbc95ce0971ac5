//go:build linux

package main

import (
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/internal/leftovers"
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
	leftovers.None(t, mark)
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

var statusLine = regexp.MustCompile(`\d+\.\ds of 1m0s, idle \d+\.\ds of 30s, \d+(\.\d)? ([KM]i)?B/s, \d+(\.\d)? ([KM]i)?B`)

// TestStatus: one live line, with the output above it, and nothing of it at the end.
func TestStatus(t *testing.T) {
	t.Parallel()
	shown, exit := onTerminal(t, ours(t),
		"stty -echo; exec deadline --status --idle 30 60 sh -c 'echo first; read x; echo second >&2; printf rest; exit 3'", map[string]string{"s of 1m0s, idle ": "\n"})
	if exit != "exit status 3" {
		t.Errorf("%s; %q", exit, shown)
	}
	if !statusLine.MatchString(shown) {
		t.Errorf("no status in %q", shown)
	}
	screen := render(shown)
	if want := []string{"first", "second", "rest"}; strings.Join(screen, "|") != strings.Join(want, "|") {
		t.Errorf("left on the screen: %q, want %q\n%q", screen, want, shown)
	}
}

// TestStatusElsewhere: where the standard output is a file, it gets the command's output
// unchanged and nothing else.
func TestStatusElsewhere(t *testing.T) {
	t.Parallel()
	shown, exit := onTerminal(t, ours(t), "deadline --status 60 sh -c 'printf part; sleep .5; exit 3' >out; echo $?; cat out; echo .", nil)
	if screen := strings.Join(render(shown), "|"); exit != "exit status 0" || screen != "3|part." {
		t.Errorf("%s, %q\n%q", exit, screen, shown)
	}
}

// render returns the lines that a terminal of enough lines shows in the end. It knows only
// what is written here.
func render(shown string) []string {
	control := regexp.MustCompile(`^\x1b\[(\d*)([A-Z])`)
	lines, row, col := []string{""}, 0, 0
	for len(shown) > 0 {
		if m := control.FindStringSubmatch(shown); m != nil {
			shown = shown[len(m[0]):]
			switch m[2] {
			case "A":
				row = max(row-int(m[1][0]-'0'), 0)
			case "J":
				lines = append(lines[:row:row], lines[row][:min(col, len(lines[row]))])
			}
			continue
		}
		c := shown[0]
		shown = shown[1:]
		switch c {
		case '\r':
			col = 0
		case '\n':
			row++
			for len(lines) <= row {
				lines = append(lines, "")
			}
		default:
			line := lines[row] + strings.Repeat(" ", max(col-len(lines[row]), 0))
			lines[row] = line[:col] + string(c) + line[min(col+1, len(line)):]
			col++
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// TestStatusText shows the line.
func TestStatusText(t *testing.T) {
	s := &status{total: time.Minute, begun: time.Now()}
	s.rate.at = s.begun
	s.written.Store(3 << 20)
	if got, want := s.text(s.begun.Add(2*time.Second)), "2.0s of 1m0s, 1.5 MiB/s, 3.0 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.total = 0
	if got, want := s.text(s.begun.Add(4*time.Second)), "4.0s, 0.0 B/s, 3.0 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
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
			leftovers.None(t, mark)
		})
	}
}
