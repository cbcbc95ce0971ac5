//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/internal/waiting"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// soak says that there is time for the long forms of tests that only real machines can pass: floods, stalls, attacks.
var soak = flag.Bool("procgroup.soak", false, "run the long forms of tests, as make soak does")

// The test binary is also the command: with modeEnv in its environment it is what
// child_test.go has under that name.
const suiteEnv = "PROCGROUP_TEST_SUITE" // marks everything that the suite has started

func TestMain(m *testing.M) {
	procgroup.HelperMain()
	if mode := os.Getenv(modeEnv); mode != "" {
		os.Exit(runMode(mode, os.Args[1:]))
	}
	os.Setenv(suiteEnv, strconv.Itoa(os.Getpid()))
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the children: otherwise each takes a second to exit
	waiting.Parallel(12)                     // the others need a processor, or are about a busy machine
	if signal.Ignored(os.Interrupt) {        // as in the background of a script: the commands would ignore it, too, and not end
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	files, goroutines := openFiles(), runtime.NumGoroutine()
	code := m.Run()
	if fuzzing := flag.Lookup("test.fuzz").Value.String() != ""; code == 0 && !fuzzing { // which leaves something behind itself
		if err := leaks(files, goroutines); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: left behind by the suite:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaks looks for what the suite has left behind. Some of it may need a moment.
func leaks(files, goroutines int) (err error) {
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if err = leaksNow(files, goroutines); err == nil {
			return nil
		}
	}
	return err
}

func leaksNow(files, goroutines int) error {
	if pids := marked(suiteEnv + "=" + strconv.Itoa(os.Getpid())); len(pids) > 0 {
		return fmt.Errorf("processes %v", pids)
	}
	if pids := children(); len(pids) > 0 {
		return fmt.Errorf("unreaped children %v", pids)
	}
	if n := openFiles(); n > files {
		list, _ := exec.Command("ls", "-l", "/proc/"+strconv.Itoa(os.Getpid())+"/fd").Output()
		return fmt.Errorf("%d open files, %d before\n%s", n, files, list)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		var b bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		return fmt.Errorf("%d goroutines, %d before\n%s", n, goroutines, &b)
	}
	if dirs := cgroupDirs(os.Getpid()); len(dirs) > 0 {
		return fmt.Errorf("control groups %v", dirs)
	}
	return nil
}

func openFiles() int {
	// The first use of the poller opens its own files for good.
	return countOpen(func(what string) bool { return !strings.HasPrefix(what, "anon_inode:[event") })
}

// countOpen counts the descriptors of this process whose link in /proc/self/fd is one of those.
func countOpen(is func(what string) bool) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	n := 0
	for _, e := range list {
		if what, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && is(what) {
			n++
		}
	}
	return n
}

// writeProgram writes a file that can be executed at once: while it is open for writing, no process
// begins that would have it open until its own exec.
func writeProgram(path string, b []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, b, mode)
}

// command is this binary in a mode.
func command(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), modeEnv+"="+mode)
	return cmd
}

// family is command with a directory for the ids of its descendants.
func family(t *testing.T, mode string, args ...string) (cmd *exec.Cmd, pids func() []int) {
	t.Helper()
	dir := t.TempDir()
	cmd = command(mode, args...)
	cmd.Env = append(cmd.Env, pidsEnv+"="+dir)
	return cmd, func() []int { return signatures(dir) }
}

// mustBeDead fails the test for each process that is alive, and ends it.
func mustBeDead(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

func checkSystem(t *testing.T, r *procgroup.Result) {
	t.Helper()
	if left := undying(r.Survivors); len(left) > 0 {
		t.Errorf("survivors %v", left)
	}
}

// A said closes its channel when the output of a command has a text.
type said struct {
	text string
	all  strings.Builder
	once sync.Once
	done chan struct{}
}

func newSaid(text string) *said { return &said{text: text, done: make(chan struct{})} }

// wait waits until the text has been said.
func (s *said) wait(t *testing.T) {
	t.Helper()
	hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + ": the command has not said " + s.text) })
	defer hung.Stop()
	<-s.done
}

// in adds to options that s gets the output.
func (s *said) in(opts ...procgroup.Option) []procgroup.Option {
	var output procgroup.Capture
	for _, o := range opts {
		if c, ok := o.(procgroup.Capture); ok {
			output = c
		}
	}
	output.Each = func(c procgroup.Chunk) {
		if s.all.Write(c.Data); strings.Contains(s.all.String(), s.text) {
			s.once.Do(func() { close(s.done) })
		}
	}
	return append(opts, output)
}

// atLimit starts the command, has its total pass when its output has a text, and waits. The clock is the test's.
func atLimit(t *testing.T, text string, cmd *exec.Cmd, opts ...procgroup.Option) (*procgroup.Result, error) {
	t.Helper()
	const limit = time.Hour
	mock, s := clock.NewMock(), newSaid(text)
	p, err := procgroup.Start(context.Background(), cmd, append(s.in(opts...), procgroup.Limits{Total: limit, Grace: 1000 * limit},
		procgroup.WithOptions(timeout.WithClock(mock), timeout.WithName("tool")))...)
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t)
	mock.Add(limit)
	return p.Wait()
}

// stopWhen starts the command, aborts it when it is ready, with a short grace, and waits.
func stopWhen(t *testing.T, ready func() bool, cmd *exec.Cmd, opts ...procgroup.Option) (*procgroup.Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opts = append([]procgroup.Option{procgroup.Stop{AbortDelay: shortGrace}, procgroup.WithOptions(timeout.WithName("tool"))}, opts...)
	p, err := procgroup.Start(ctx, cmd, opts...)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the command to get ready", ready)
	cancel()
	return p.Wait()
}

// eachContainment runs a test with every containment that catches everything.
func eachContainment(t *testing.T, f func(t *testing.T, opt procgroup.Option)) {
	for _, c := range []procgroup.Containment{procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		t.Run(string(c), func(t *testing.T) {
			if c == procgroup.Cgroup {
				needCgroup(t)
			}
			f(t, c)
		})
	}
}

// needCgroup skips a test where no control groups can be made.
func needCgroup(t *testing.T) {
	t.Helper()
	if err := noCgroup(); err != nil {
		t.Skip("needs root or a delegated cgroup v2:", err)
	}
}

var noCgroup = sync.OnceValue(func() error {
	_, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.Cgroup)
	return err
})

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}
