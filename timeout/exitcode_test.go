package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/timeout"
)

type coded int

func (c coded) Error() string { return fmt.Sprint("code ", int(c)) }
func (c coded) ExitCode() int { return int(c) }

// The test binary is its own evil child.
func TestMain(m *testing.M) {
	switch os.Getenv("TIMEOUT_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "exit 3":
		os.Exit(3)
	case "hang":
		select {}
	case "stall beats":
		stallChild(true)
	case "stall stuck":
		stallChild(false)
	}
}

func child(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "TIMEOUT_TEST_CHILD="+what, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// SPEC 5.1, 5.2.
func TestExitCode(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.txt")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, openErr := os.Open(filepath.Join(dir, "missing"))
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, 0},
		{"idle", &timeout.Error{Kind: timeout.ErrIdle}, 124},
		{"total", &timeout.Error{Kind: timeout.ErrTotal}, 124},
		{"aborted", &timeout.Error{Kind: timeout.ErrAborted}, 130},
		{"wrapped", fmt.Errorf("x: %w", &timeout.Error{Kind: timeout.ErrAborted}), 130},
		{"124 stands beside the child's own code", errors.Join(coded(0), &timeout.Error{Kind: timeout.ErrTotal, Err: coded(3)}), 124},
		{"any error", errTool, 1},
		{"an error with a code", fmt.Errorf("x: %w", coded(42)), 42},
		{"an error with code 0", coded(0), 0},
		{"an error with a negative code", coded(-1), 1},
		{"context of somebody else, cancelled", context.Canceled, 1},
		{"context of somebody else, expired", context.DeadlineExceeded, 1},
		{"a missing file is no missing command", openErr, 1},
		{"exit 3", child(t, "exit 3").Run(), 3},
		{"not found in PATH", exec.Command("no-such-command-anywhere").Run(), 127},
		{"not found, as a tool says it", fmt.Errorf("git: %w", exec.ErrNotFound), 127},
		{"not found by path", exec.Command(filepath.Join(dir, "missing")).Run(), 127},
		{"not executable", exec.Command(plain).Run(), 126},
		{"too many files", &fs.PathError{Op: "fork/exec", Path: "x", Err: syscall.EMFILE}, 1},
		{"an ExitError without a state", &exec.ExitError{}, 1},
	} {
		if runtime.GOOS == "windows" && tc.name == "not executable" {
			tc.want = 127 // a file without a known extension is not a command there
		}
		if got := timeout.ExitCode(tc.err); got != tc.want {
			t.Errorf("%s (%v): %d, want %d", tc.name, tc.err, got, tc.want)
		}
	}
}

func TestExitCodeOfASignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals: a killed process has exit code 1 there")
	}
	cmd := child(t, "hang")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := timeout.ExitCode(cmd.Wait()); got != 128+9 {
		t.Errorf("%d, want 137", got)
	}
}
