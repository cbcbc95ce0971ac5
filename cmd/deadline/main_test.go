//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// atEnd is called after the tests.
var atEnd []func()

// The test binary is the program when it is called by one of the program's names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "deadline", "timeout":
		moment = waits
		main()
	case "hang":
		hang(os.Args[1:])
	}
	harness.Main(m, nil, harness.Options{Parallel: 8, Close: func() {
		for _, fn := range atEnd {
			fn()
		}
	}})
}

// waits keeps the limits from beginning until the command of a script has made the file "up" or has its trap, and makes
// the file "sent" when it has been sent a signal.
func waits(what string, command *os.Process) {
	switch what {
	case "sent":
		_ = os.WriteFile("sent", nil, 0o600)
		return
	case "starting":
		if os.Getenv("HUNG") != "" {
			_ = os.WriteFile("sent", nil, 0o600)
			select {}
		}
		return
	}
	ready := os.Getenv("READY")
	for begun := time.Now(); ready != "" && time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		if ready == "up" {
			if _, err := os.Stat("up"); err == nil {
				return
			}
			continue
		}
		sig, _ := strconv.Atoi(ready)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Pid))
		for _, set := range caught.FindAllSubmatch(status, -1) {
			if bits, _ := strconv.ParseUint(string(set[1]), 16, 64); bits>>(sig-1)&1 == 1 {
				return
			}
		}
		if err != nil { // it has ended, or the system has no such file
			return
		}
	}
}

var (
	caught  = regexp.MustCompile(`Sig(?:Cgt|Ign):\t([0-9a-f]+)\n`)
	trapped = regexp.MustCompile(`sh -c '[^']*\btrap "[^"]*" ([\w+-]+)`)
)

// ready returns the variable that says what keeps the limits of a script from beginning.
func ready(script string) string {
	if strings.Contains(script, ">up") {
		return "READY=up"
	}
	if trap := trapped.FindStringSubmatch(script); trap != nil {
		sig, err := parseSignal(trap[1])
		if err != nil {
			panic(err)
		}
		return fmt.Sprint("READY=", int(sig))
	}
	return "READY="
}

// Nothing here waits for as long as this unless it fails.
const veryLong = 5 * time.Minute

// ours returns a directory in which deadline and timeout are the program.
func ours(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"deadline", "timeout", "hang"} {
		if err := os.Symlink(exe, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// It sleeps until the signal of a limit has been sent.
	const sleep = "#!/bin/sh\nif [ $1 != sent ]; then exec /bin/sleep $1; fi\nuntil [ -e sent ]; do /bin/sleep .01; done\n"
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte(sleep), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A result is what can be seen of a script from outside.
type result struct {
	Exit           string
	Stdout, Stderr string
}

// prepare makes a command of a shell script that finds the program in bin. What it starts
// can be found by a variable of its environment.
func prepare(t *testing.T, bin, script string, env ...string) (cmd *exec.Cmd, mark string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), veryLong)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir = t.TempDir()
	mark = harness.Mark()
	// The race detector would have each process wait for a second at its end.
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "LC_ALL=C", "GORACE=atexit_sleep_ms=0", ready(script), mark}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute
	return cmd, mark
}

// runScript runs a script and checks that it leaves nothing behind.
func runScript(t *testing.T, bin, script string, env ...string) result {
	t.Helper()
	cmd, mark := prepare(t, bin, script, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	fixtures(t, cmd.Dir, script)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\nstdout: %s\nstderr: %s", script, err, &stdout, &stderr)
	}
	harness.None(t, mark)
	return result{Exit: strings.TrimSuffix(cmd.ProcessState.String(), " (core dumped)"), Stdout: stdout.String(), Stderr: stderr.String()}
}

// fixtures makes the files that a script names.
func fixtures(t *testing.T, dir, script string) {
	t.Helper()
	for name, f := range map[string]struct {
		mode os.FileMode
		text string
	}{
		"plain":        {0o644, "text\n"},
		"headless":     {0o755, "echo headless \"$0\" \"$@\"\n"},
		"lost":         {0o755, "#!/nonexistent/interpreter\n"},
		"first/tool":   {0o644, "#!/bin/sh\necho first\n"},
		"second/tool":  {0o755, "#!/bin/sh\necho second\n"},
		"second/blank": {0o755, ""},
	} {
		if !strings.Contains(script, filepath.Base(name)) {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		// A process that another test starts meanwhile would have the file open for writing until its
		// exec, and nobody could execute it.
		syscall.ForkLock.RLock()
		err := os.WriteFile(path, []byte(f.text), f.mode)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(script, "loop") {
		if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
			t.Fatal(err)
		}
	}
}
