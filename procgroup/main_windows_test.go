package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The test binary is also the command: with modeEnv in its environment it is what modes
// has under that name.
const forever = 2 * time.Minute // how long a child lives that nobody ends

func TestMain(m *testing.M) {
	procgroup.HelperMain()
	if mode := os.Getenv(modeEnv); mode != "" {
		if dir := os.Getenv(pidsEnv); dir != "" {
			_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600)
		}
		os.Exit(modes()[mode](os.Args[1:]))
	}
	harness.Main(m, nil, harness.Options{})
}

// modes get the arguments and give the exit code.
func modes() map[string]func(args []string) int {
	return map[string]func([]string) int{
		"exit":    func(a []string) int { return atoi(a[0]) },
		"sleep":   sleep,
		"deaf":    deaf,
		"handler": handler,
		"tree":    tree,
		"fork":    func(a []string) int { child(len(a) > 1, a[0]); return 0 },
		"flood":   flood,
		"print":   printText,
		"echo":    func([]string) int { _, _ = io.Copy(os.Stdout, os.Stdin); return 0 },
		"run":     supervisor,
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func sleep([]string) int { time.Sleep(forever); return 0 }

// deaf ignores what a console can send.
func deaf([]string) int {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	fmt.Println("ready")
	return sleep(nil)
}

// handler exits with a code when it is asked to end.
func handler(a []string) int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	fmt.Println("ready")
	select {
	case <-c:
		fmt.Println("bye")
	case <-time.After(forever):
	}
	return atoi(a[0])
}

// child starts this binary in another mode, in a group and on a console of its own, as
// what wants to escape does.
func child(hold bool, mode string, args ...string) *exec.Cmd {
	cmd := command(mode, args...)
	if hold {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}

// tree is a leader with a plain child and a daemon whose parent is gone. Then it is the
// mode that the arguments name. A first "hold" makes the daemon keep the streams.
func tree(a []string) int {
	var hold []string
	if a[0] == "hold" {
		hold, a = a[:1], a[1:]
	}
	child(false, "sleep")
	_ = child(len(hold) > 0, "fork", append([]string{"sleep"}, hold...)...).Wait()
	for len(signatures(os.Getenv(pidsEnv))) < treeSize {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	return modes()[a[0]](a[1:])
}

// treeSize is how many processes a tree has, the one that ended included.
const treeSize = 4

func flood(a []string) int {
	block := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for n := atoi(a[0]); n > 0; n -= len(block) {
		if _, err := os.Stdout.Write(block[:min(n, len(block))]); err != nil {
			return 1
		}
	}
	return 0
}

// printText prints a dot to stderr, many times at an interval.
func printText(a []string) int {
	for range atoi(a[0]) {
		fmt.Fprint(os.Stderr, ".")
		time.Sleep(100 * time.Millisecond)
	}
	return 0
}

// supervisor runs a tree, and is killed in the middle of it.
func supervisor([]string) int {
	_, _ = procgroup.Run(context.Background(), command("tree", "sleep"))
	return 0
}

// command is this binary in a mode.
func command(mode string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), modeEnv+"="+mode)
	return cmd
}

// family is command with a directory for the ids of its descendants.
func family(t *testing.T, mode string, args ...string) (cmd *exec.Cmd, pids func() []int) {
	t.Helper()
	dir := tempDir(t)
	cmd = command(mode, args...)
	cmd.Env = append(cmd.Env, pidsEnv+"="+dir)
	return cmd, func() []int { return signatures(dir) }
}

// tempDir is t.TempDir for Wine 8, which cannot delete in the way of os.RemoveAll.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "procgroup-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
		_ = os.Remove(dir)
	})
	return dir
}

func signatures(dir string) (pids []int) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		pids = append(pids, atoi(e.Name()))
	}
	return pids
}

func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	event, _ := windows.WaitForSingleObject(h, 0)
	return event == uint32(windows.WAIT_TIMEOUT)
}

// living are those that are alive. Each is ended.
func living(pids []int) (alives []int) {
	for _, pid := range pids {
		if alive(pid) {
			alives = append(alives, pid)
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
				_ = p.Release()
			}
		}
	}
	return alives
}

// mustBeDead fails the test for processes that are alive, and ends them.
func mustBeDead(t *testing.T, pids []int) {
	t.Helper()
	if l := living(pids); len(l) > 0 {
		t.Errorf("of the processes %v, %v are alive", pids, l)
	}
}

func checkSystem(t *testing.T, r *procgroup.Result) {
	t.Helper()
	if len(r.Survivors) > 0 || r.State == nil || r.Contained != procgroup.Job {
		t.Errorf("survivors %v, state %v, contained by %v", r.Survivors, r.State, r.Contained)
	}
}

// hangs ends the test binary if a test hangs. Call what it returns at the end of the test.
func hangs(t *testing.T) (stop func()) {
	timer := time.AfterFunc(2*time.Minute, func() { panic(t.Name() + " hangs") })
	return func() { timer.Stop() }
}

// run runs the command.
func run(t *testing.T, cmd *exec.Cmd, opts ...procgroup.Option) (*procgroup.Result, error) {
	t.Helper()
	defer hangs(t)()
	return procgroup.Run(context.Background(), cmd, append(opts, procgroup.WithOptions(timeout.WithName("tool")))...)
}
