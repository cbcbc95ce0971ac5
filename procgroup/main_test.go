//go:build linux

package procgroup_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// soak says that there is time for the long forms of tests that only real machines can pass: floods, stalls, attacks.
var soak = flag.Bool("procgroup.soak", false, "run the long forms of tests, as make soak does")

// The test binary is also the command: each mode and each host of child_test.go.
func TestMain(m *testing.M) {
	procgroup.HelperMain()
	all := make(map[string]func())
	for _, some := range []map[string]func([]string) int{modes, hosts} {
		for name, f := range some {
			all[name] = func() {
				if name != "deaf" && name != "tree" { // these sign when they are ready
					sign()
				}
				os.Exit(f(os.Args[1:]))
			}
		}
	}
	// The tests that are not parallel need a processor, or are about a busy machine.
	harness.Main(m, all, harness.Options{Parallel: 12, Close: func() {
		for begun := time.Now(); len(cgroupDirs(os.Getpid())) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				panic(fmt.Sprintf("control groups are left: %v", cgroupDirs(os.Getpid())))
			}
		}
	}})
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
func command(mode string, args ...string) *exec.Cmd { return harness.Command(mode, args...) }

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
