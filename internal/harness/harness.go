// Package harness runs the tests of a package that start themselves as other programs, wait for what is outside of any
// bubble, and leave nothing behind. Tests of all modules share it.
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
	suiteEnv = "HARNESS_SUITE" // the process id of the suite, in all that its tests start
	bound    = time.Minute     // only says that something hangs
)

// Options are the options of a test suite; see [Main].
type Options struct {
	// Parallel, if not 0, is how many parallel tests run at once where the command line does not say it.
	Parallel int
	// Close, if not nil, ends what all tests share, before the search for leaks.
	Close func()
}

// Main is a TestMain: it runs the tests, and exits. In a process that [Command] has started, it calls the function of
// modes instead, and exits with 0 if that returns. The function may be the main of the program under test.
//
// If all tests pass, but what they have started or opened is still there a minute later, as [Leaks] sees it, the exit
// code is 1. After fuzzing nothing is checked, because that leaves goroutines of its own.
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
	// A shell has its commands in the background ignore these, and what the tests start would ignore them, too.
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

// Start starts a command whose standard output begins with a text, and waits for that. It returns what follows.
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

// Eventually waits, in real time, until ok reports true, and fails the test after a minute. what names the condition
// in the message, such as "the server to end".
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("waited for %v for %s, in vain", bound, what)
	}
}

// poll reports whether ok has reported true in time. It looks less and less often: some looks are work.
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
