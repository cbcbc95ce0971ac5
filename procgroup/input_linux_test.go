package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.18: without the request an idle limit stops it, and the message says why it was silent.
func TestIdleSaysInput(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		cmd := exec.Command("sh", "-c", "printf 'Password: '; read x")
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		defer in.Close()
		p, err := procgroup.Start(ctx, cmd, procgroup.Input{Notify: func(w procgroup.InputWait) {
			if w.Prompt != "" {
				mock.Add(20 * time.Second)
			}
		}})
		if err != nil {
			return err
		}
		_, err = p.Wait()
		return err
	}, timeout.Config{Idle: 20 * time.Second}, timeout.WithName("tool"), timeout.WithClock(mock))
	want := "No progress for 20s (idle timeout). Its command waits for input: Password:"
	if err == nil || err.Error() != want || !errors.Is(err, timeout.ErrIdle) {
		t.Errorf("got %v\nwant %v", err, want)
	}
}

// SPEC 6.15, 6.16: a program that asks the terminal for something fails at once, in a session of its own. In a process
// group of the host's session it is stopped by the terminal, which is found and said.
func TestTerminalOfTheHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mode, script, want string
	}{
		{"read, by default", "", "read x </dev/tty", "exited"},
		{"read, in a group", "group", "read x </dev/tty", "stopped by the terminal"},
		{"stdin is the terminal", "stdin", "read x", "stopped by the terminal"},
		{"a group that asks nothing", "group", "sleep 1", "exited"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			master, slave := terminal(t)
			go func() { _, _ = io.Copy(io.Discard, master) }() // until the test closes it
			var out strings.Builder
			host := command("terminalhost", tt.mode, tt.script)
			host.Stdin, host.Stdout, host.Stderr = slave, &out, &out
			host.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := host.Run(); err != nil || !strings.HasPrefix(out.String(), tt.want+"\n") {
				t.Errorf("%v: %s, want %s", err, &out, tt.want)
			}
		})
	}
}

func init() {
	hosts["terminalhost"] = func(a []string) int {
		cmd := exec.Command("sh", "-c", a[1])
		switch a[0] {
		case "group":
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		case "stdin":
			cmd.Stdin = os.Stdin
		}
		r, err := procgroup.Run(context.Background(), cmd)
		fmt.Println(r.Reason)
		fmt.Println(r.Message, err, errors.Is(err, procgroup.StoppedByTerminal) == (r.Reason == procgroup.StoppedByTerminal), timeout.ExitCode(err))
		fmt.Print(r.Tree, r.Combined)
		return 0
	}
}

// terminal makes a pair of pseudo-terminals.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// SPEC 6.17: usual programs ask nobody, and a variable that is set keeps its value.
func TestUnattended(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `echo "$GIT_EDITOR $PAGER $TERM"`)
	cmd.Env = append(os.Environ(), "PAGER=more", "TERM=")
	if r, err := procgroup.Run(context.Background(), cmd, procgroup.Input{Unattended: true}); err != nil || r.Stdout.String() != "true more \n" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	if len(cmd.Env) != len(os.Environ())+2 {
		t.Error("the caller's command was changed")
	}
	const repository = "git init -q . && git config user.name a && git config user.email b && echo a >a && git add a && "
	for _, tt := range []struct {
		script, output string
		code           int
	}{
		{repository + "git commit", "empty commit message", 1},
		{repository + "git commit -qm x && git log", "Author: a <b>", 0},
		{"git ls-remote https://127.0.0.1:1/x", "", 128},
	} {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", tt.script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1")
			r, err := procgroup.Run(context.Background(), cmd, procgroup.Input{Unattended: true})
			if timeout.ExitCode(err) != tt.code || !strings.Contains(r.Combined.String(), tt.output) {
				t.Errorf("%v: %s", err, r.Combined)
			}
		})
	}
}
