package procgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// needCtrlBreak gives this process a console, if it has none, for the time of the test.
func needCtrlBreak(t *testing.T) {
	t.Helper()
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		t.Skip("needs Windows: Wine does not implement Ctrl-Break")
	}
	if _, err := windows.GetConsoleCP(); err == nil {
		return
	}
	kernel32 := windows.NewLazySystemDLL("kernel32.dll")
	if ok, _, err := kernel32.NewProc("AllocConsole").Call(); ok == 0 {
		t.Skip("needs a console:", err)
	}
	t.Cleanup(func() { _, _, _ = kernel32.NewProc("FreeConsole").Call() })
}

// endless is a grace that nothing outlasts: what is to end before it ends, or the test hangs.
const endless = 24 * time.Hour

// stopReady aborts the command once it has said that it is ready, and waits.
func stopReady(t *testing.T, cmd *exec.Cmd, grace time.Duration) *procgroup.Result {
	t.Helper()
	defer hangs(t)()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan struct{})
	first := true
	p, err := procgroup.Start(ctx, cmd, procgroup.WithOptions(timeout.WithName("tool")), procgroup.Stop{AbortDelay: grace},
		procgroup.Capture{Each: func(c procgroup.Chunk) {
			if first && len(c.Data) > 0 {
				first = false
				close(ready)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	cancel()
	r, err := p.Wait()
	if r.ExitCode != 130 || len(r.Survivors) > 0 || r.Contained != procgroup.Job {
		t.Errorf("%+v, %v", r, err)
	}
	return r
}

// SPEC 6.1: on a console, a command that handles the request to end ends by itself,
// and is not waited for any longer.
func TestHandlesCtrlBreak(t *testing.T) {
	needCtrlBreak(t)
	r := stopReady(t, command("handler", "3"), endless)
	if r.State.ExitCode() != 3 || r.Stdout.String() != "ready\nbye\n" || r.Escalated {
		t.Errorf("state %v, output %q, escalated %v", r.State, r.Stdout, r.Escalated)
	}
}

// SPEC 6.1: a command that ignores the request to end is killed at the end of the grace.
func TestIgnoresCtrlBreak(t *testing.T) {
	needCtrlBreak(t)
	r := stopReady(t, command("deaf"), shortGrace)
	if r.State.ExitCode() != 1 || !r.Escalated {
		t.Errorf("state %v, escalated %v", r.State, r.Escalated)
	}
}

// Whom no request can reach is killed at once.
func TestNoConsoleNoGrace(t *testing.T) {
	cmd := command("handler", "3")
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS}
	r := stopReady(t, cmd, endless)
	if r.State.ExitCode() != 1 || r.Escalated {
		t.Errorf("state %v, escalated %v", r.State, r.Escalated)
	}
}

// The end of the context asks, where there is a console, and kills after the grace.
func TestAttachAsks(t *testing.T) {
	needCtrlBreak(t)
	testAttach(t, []attachCase{
		{[]string{"handler", "3"}, 0, endless, 3},
		{[]string{"deaf"}, 0, shortGrace, 1},
	})
}

// Without a grace, or whom no request can reach, it kills at once.
func TestAttachKills(t *testing.T) {
	testAttach(t, []attachCase{
		{[]string{"handler", "3"}, 0, -1, 1},
		{[]string{"handler", "3"}, windows.DETACHED_PROCESS, endless, 1},
	})
}

type attachCase struct {
	mode  []string
	flags uint32
	grace time.Duration
	code  int
}

func testAttach(t *testing.T, cases []attachCase) {
	t.Helper()
	defer hangs(t)()
	for _, tt := range cases {
		ctx, cancel := context.WithCancel(context.Background())
		made := command(tt.mode[0], tt.mode[1:]...)
		cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
		cmd.Env = made.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: tt.flags}
		procgroup.Attach(cmd, procgroup.Stop{Grace: tt.grace})
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Error(err)
		}
		cancel()
		err = cmd.Wait()
		if err == nil || cmd.ProcessState.ExitCode() != tt.code {
			t.Errorf("%v: %v, code %d, want %d", tt.mode, err, cmd.ProcessState.ExitCode(), tt.code)
		}
	}
}

// Of the signals, Windows has the request to end, and the kill.
func TestSignals(t *testing.T) {
	var bad *timeout.ConfigError
	for _, sig := range []os.Signal{nil, syscall.SIGHUP, syscall.Signal(0)} {
		if _, err := procgroup.Start(context.Background(), command("exit", "0"), procgroup.Stop{Signal: sig}); !errors.As(err, &bad) {
			t.Errorf("%v: %v", sig, err)
		}
	}
	p, err := procgroup.Start(context.Background(), command("sleep"), procgroup.Stop{Signal: os.Interrupt})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGHUP); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := p.Signal(os.Kill); err != nil {
		t.Error(err)
	}
	r, err := p.Wait()
	check(t, r, err, want{code: 1})
	if err := p.Signal(os.Kill); err != os.ErrProcessDone {
		t.Error(err)
	}
}
