//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func init() {
	hosts["signalled"] = runModeSignalled
	hosts["cloneless"] = runModeCloneless
}

// A host gets one SIGCHLD for each command, for the first one too, unless that has an input and a control group.
func TestSignalsOfChildren(t *testing.T) {
	t.Parallel()
	for _, c := range []procgroup.Containment{"", procgroup.Group, procgroup.Descendants, procgroup.Cgroup} {
		for _, stdin := range []string{"", "stdin"} {
			t.Run(string(c)+" "+stdin, func(t *testing.T) {
				t.Parallel()
				if c == procgroup.Cgroup {
					needCgroup(t)
				}
				if out, err := command("signalled", string(c), stdin).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

// runModeSignalled counts what it gets of one command, and then of another. Each lives long enough
// for a signal that came before to have been seen.
func runModeSignalled(a []string) int {
	c := make(chan os.Signal, 100)
	signal.Notify(c, unix.SIGCHLD)
	more := 0
	for i := range 2 {
		cmd := sleepCommand("0.2")
		if a[1] == "stdin" {
			cmd.Stdin = strings.NewReader("x")
		}
		r, err := procgroup.Run(context.Background(), cmd, containments[a[0]])
		if err != nil {
			fmt.Println(err, r)
			return 1
		}
		if r.Contained == procgroup.Cgroup && cmd.Stdin != nil {
			more = 1
		}
		i += more
		for begun := time.Now(); len(c) < i+1 && time.Since(begun) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // for one too many
		if n := len(c); n != i+1 {
			fmt.Println(n, "signals of", i+1, "commands")
			return 1
		}
	}
	return 0
}

// Where the system makes control groups and starts nothing in them, as one that knows no clone3 or
// does not allow it, no command is lost: not the first one, and not its input either.
func TestControlGroupsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	needCgroup(t)
	for _, stdin := range []string{"none", "pipe", "reader", "late"} {
		t.Run(stdin, func(t *testing.T) {
			host := command("cloneless", stdin)
			rep := supervise(t, host)
			if rep.Errors != nil || rep.Stdout != "hello" || rep.Contained != string(procgroup.Descendants) {
				t.Errorf("%+v", rep)
			}
			if dirs := cgroupDirs(host.Process.Pid); len(dirs) > 0 {
				t.Errorf("left behind: %v", dirs)
			}
		})
	}
}

// runModeCloneless is a host without clone3. Its first command has nothing to read, a pipe or a reader.
// If that is "late", clone3 goes when a command was started, and the next one has a pipe.
func runModeCloneless(a []string) int {
	stdin := a[0]
	var rep report
	if stdin == "late" {
		if _, err := procgroup.Run(context.Background(), exec.Command("true")); err != nil {
			rep.Errors = append(rep.Errors, err.Error())
		}
	}
	denyClone3()
	if stdin == "late" {
		// It is not started without its input, which os/exec has closed.
		r, err := procgroup.Run(context.Background(), hello("pipe"))
		if r != nil || !errors.Is(err, unix.ENOSYS) {
			rep.Errors = append(rep.Errors, fmt.Sprintf("a pipe that was closed: %+v, %v", r, err))
		}
	}
	r, err := procgroup.Run(context.Background(), hello(stdin))
	if err != nil {
		rep.Errors = append(rep.Errors, err.Error())
	}
	if r != nil {
		rep.Stdout, rep.Contained = r.Stdout.String(), string(r.Contained)
	}
	if _, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.Cgroup); !errors.Is(err, errors.ErrUnsupported) {
		rep.Errors = append(rep.Errors, fmt.Sprint("asked for a control group: ", err))
	}
	if _, err := procgroup.Run(context.Background(), exec.Command("/no/such/command")); timeout.ExitCode(err) != 127 {
		rep.Errors = append(rep.Errors, fmt.Sprint("no such command: ", err))
	}
	return say(rep)
}

// hello is a command that prints "hello", which it may have to read.
func hello(stdin string) *exec.Cmd {
	cmd := exec.Command("cat")
	switch stdin {
	case "pipe":
		w, err := cmd.StdinPipe()
		if err != nil {
			panic(err)
		}
		go func() {
			defer w.Close()
			_, _ = io.WriteString(w, "hello")
		}()
	case "reader":
		cmd.Stdin = strings.NewReader("hello")
	default:
		cmd = exec.Command("printf", "hello")
	}
	return cmd
}

// denyClone3 makes clone3 fail in this process, as a container does that does not know it.
func denyClone3() {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread() // which has to have the first for the second
	defer runtime.UnlockOSThread()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	_, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if no != 0 {
		panic(no)
	}
}
