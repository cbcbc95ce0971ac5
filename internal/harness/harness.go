// Package harness supports tests that run their own test binary as another program and that wait for events in real
// time. It fails a suite that leaves goroutines, descriptors or processes behind. Tests of all modules share it.
package harness

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"testing"
	"time"
)

const (
	modeEnv  = "HARNESS_MODE"
	suiteEnv = "HARNESS_SUITE" // the process id of the suite, in the environment of all processes that its tests start
	bound    = time.Minute     // much longer than any condition takes that will come true
)

// Options are the options of a test suite; see [Main].
type Options struct {
	// Parallel, unless it is 0, is the default of the flag -test.parallel.
	Parallel int
	// Close, unless it is nil, is called after the tests and before the search for leaks, to close what tests share.
	Close func()
}

// Main implements TestMain: it runs the tests, and exits. In a process that [Command] has started, it calls the
// function that modes has for the mode instead, and exits with 0 if that returns. The function may be the main function
// of the program under test.
//
// If all tests pass, but [Leaks] still reports something a minute later, the exit code is 1. After fuzzing, which
// leaves goroutines behind, Main does not check.
func Main(m *testing.M, modes map[string]func(), o Options) {
	if mode := os.Getenv(modeEnv); mode != "" {
		os.Unsetenv(modeEnv)
		run, ok := modes[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		run()
		os.Exit(0)
	}
	os.Setenv(suiteEnv, strconv.Itoa(os.Getpid()))
	// By default a program under the race detector sleeps for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	// A shell makes its background commands ignore these signals, and processes that the tests start would inherit that.
	for _, sig := range ignorable {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); o.Parallel > 0 && f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(o.Parallel))
	}
	left := Leaks()
	code := m.Run()
	if o.Close != nil {
		o.Close()
	}
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" && !poll(func() bool { return left() == "" }) {
		fmt.Fprintln(os.Stderr, "FAIL: left behind by the suite:", left())
		code = 1
	}
	os.Exit(code)
}

// Command returns a command that runs the test binary in a mode of [Main]. The mode sees args as os.Args[1:].
func Command(mode string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), modeEnv+"="+mode)
	return cmd
}

// Start starts a command whose standard output begins with text, and waits until it has read that. It returns a reader
// of the rest of the output. If the output begins otherwise, it fails the test.
func Start(t testing.TB, cmd *exec.Cmd, text string) (rest io.Reader) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len(text))
	if n, err := io.ReadFull(out, said); err != nil || string(said) != text {
		t.Fatalf("it says %q, %v, want %q", said[:n], err, text)
	}
	return out
}

// Eventually calls ok, with pauses in real time, until ok returns true. It fails the test after a minute. what
// completes the message "waited for", such as "the server to end".
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("waited for %v for %s, in vain", bound, what)
	}
}

// poll calls ok until it returns true, or for about a minute, and reports whether it did. The pauses between the calls
// grow, because a call may be expensive.
func poll(ok func() bool) bool {
	pause := time.Millisecond
	for begun := time.Now(); !ok(); time.Sleep(pause) {
		if time.Since(begun) > bound {
			return false
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
	return true
}
