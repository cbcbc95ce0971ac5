package procgroup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/benbjohnson/clock"
	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func init() { modes["waits"] = waiter }

// waiter waits in each way that a look has to ask something about. It has a child in its group, one in a session of its
// own, and a zombie, and prints the ids of all.
func waiter([]string) int {
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1)
	say := func(pid int) { fmt.Println(pid) }
	say(os.Getpid())
	for i := range 3 {
		cmd := exec.Command("sleep", "120")
		if i == 2 {
			cmd = exec.Command("true")
		}
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: i == 1}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		say(cmd.Process.Pid)
	}
	go func() { // with timers, perhaps
		runtime.LockOSThread()
		var set [16]uint64
		set[0] = 1 << (unix.SIGUSR2 - 1)
		_, _, _ = unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, 0, 8, 0, 0)
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		panic(err)
	}
	go func() {
		var b [1]byte
		_, _ = unix.Read(pair[0], b[:])
	}()
	r, _, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	go func() {
		var b [1]byte
		_, _ = r.Read(b[:]) // epoll
	}()
	go func() {
		var b [1]byte
		r, _, _ := os.Pipe()
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}, -1)
		_, _ = r.Read(b[:])
	}()
	fmt.Println("ready")
	var b [1]byte
	_, _ = unix.Read(0, b[:])
	return 0
}

// questions are those that the system is asked about processes: all methods of procfs.Reader, the only way to ask.
func questions() (names []string) {
	reader := reflect.TypeFor[*procfs.Reader]()
	for i := range reader.NumMethod() {
		names = append(names, reader.Method(i).Name)
	}
	return names
}

// A stall lets questions about processes wait for an answer until the end of a test.
type stall struct {
	mu      sync.Mutex
	never   map[question]chan struct{} // closed at the end of the test
	reached map[string]bool
	by      map[int]bool // the processes about which their question was asked
}

type question struct {
	name string
	pid  int
}

func (s *stall) asked(name string, pid int) {
	s.mu.Lock()
	wait := s.never[question{name, pid}]
	if wait != nil {
		s.reached[name], s.by[pid] = true, true
	}
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

func (s *stall) add(name string, pid int, until chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.never[question{name, pid}] = until
}

// SPEC 6.11: whichever question about its processes the system never answers, the call returns in time, and what is alive
// is listed. A new question is a new row.
func TestUnansweredQuestions(t *testing.T) {
	s := &stall{never: make(map[question]chan struct{}), reached: make(map[string]bool), by: make(map[int]bool)}
	hook := s.asked
	procfs.Stall.Store(&hook)
	t.Cleanup(func() { procfs.Stall.Store(nil) })
	const limit, grace = time.Hour, 200 * time.Millisecond
	ends := []string{"limit", "abort", "own end"}
	contained := []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper}
	row := func(t *testing.T, name string, c procgroup.Containment, end string, alone bool) {
		if c == procgroup.Cgroup {
			needCgroup(t)
		}
		system := aboutNone[name]
		if system && c != procgroup.Descendants {
			t.Skip("the same")
		}
		if !system && !alone { // else it would stall the others
			t.Parallel()
		}
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.OpenFile(fifo, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		release := make(chan struct{})
		defer close(release)
		if system {
			s.add(name, 0, release)
		}
		mock := clock.NewMock()
		cmd := command("waits")
		cmd.Stdin = in
		var pids []int
		ready := make(chan struct{})
		opts := []procgroup.Option{
			c, procgroup.Stop{Grace: grace, AbortDelay: grace, Stacks: true},
			procgroup.Activity{CPU: true, IO: true},
			procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
				if pid, err := strconv.Atoi(line); err == nil && len(pids) < 4 {
					s.add(name, pid, release)
					pids = append(pids, pid)
				} else if line == "ready" {
					close(ready)
				}
			})},
			procgroup.Limits{Total: limit, Idle: limit}, procgroup.WithOptions(timeout.WithClock(mock)),
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		p, err := procgroup.Start(ctx, cmd, opts...)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = p.Wait()
		}()
		select {
		case <-ready:
		case <-done:
		}
		mock.Add(limit / 4) // work is looked for
		if slices.Contains(ofInput, name) {
			harness.Eventually(t, "a look at the input", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return slices.ContainsFunc(pids, func(pid int) bool { return s.by[pid] })
			})
		}
		switch end {
		case "limit":
			mock.Add(limit)
		case "abort":
			cancel()
		case "own end":
			_, _ = in.Write([]byte("x"))
		}
		hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + ": it has not returned after a minute") })
		<-done
		hung.Stop()
		r, _ := p.Wait()
		for i, pid := range pids {
			left := r.Contained == procgroup.Group && i == 2 || // the group
				r.Contained == procgroup.Helper && slices.Contains(r.Survivors, cmd.Process.Pid) // see TestSlowHelperOfWhatIsNotShown
			if !left && alive(pid) && !slices.Contains(slices.Concat(r.Survivors, r.Unidentified), pid) {
				t.Errorf("%d lives on, and is in neither list: %v, %v; %v", pid, r.Survivors, r.Unidentified, r.Tree)
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	t.Run("questions", func(t *testing.T) {
		for i, name := range questions() {
			for j, c := range contained {
				for k, end := range ends {
					if *soak || k == (i+j)%len(ends) { // each question in each containment, with one of the ends
						t.Run(name+"/"+string(c)+"/"+end, func(t *testing.T) { row(t, name, c, end, false) })
					}
				}
			}
		}
	})
	// Beside so many others the time for a look may be over before its last questions. Alone each of them is asked.
	for _, name := range questions() {
		asked := func() bool {
			s.mu.Lock() // a meter for which nobody waits may still ask
			defer s.mu.Unlock()
			return s.reached[name]
		}
		if _, ok := notAsked[name]; ok {
			continue
		}
		for begun := time.Now(); !asked(); {
			if time.Since(begun) > time.Minute {
				t.Fatalf("%s is not asked", name)
			}
			for i, c := range contained {
				t.Run(name+"/alone/"+string(c), func(t *testing.T) { row(t, name, c, ends[i%len(ends)], true) })
			}
		}
	}
}

// aboutNone are the questions that are about no process in particular.
var aboutNone = map[string]bool{"LastPID": true, "PIDs": true, "TCPBytes": true, "UnixPeer": true}

// ofInput are those with which a look for a wait for input begins or ends.
var ofInput = []string{"Threads", "OpenFile", "OpenFiles", "Refers", "Targets", "Memory", "InodeOf"}

// notAsked are the questions that a test may not see being asked, and why.
var notAsked = map[string]string{
	"Executable": "package host", "Holds": "package host",
	"SameUser":  "root may look at everything",
	"Stack":     "where the system shows no Wait",
	"HasTimers": "the thread may not have got to its wait",
	"InCgroup":  "it is Cgroup", "Polled": "it is Memory", "Selected": "it is Memory",
}
