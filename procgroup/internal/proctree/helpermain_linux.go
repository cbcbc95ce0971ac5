package proctree

import (
	"encoding/binary"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// The code in this file runs in the helper process; see helper_linux.go.

// HelperMain does not return if this process was started as a helper: it runs the helper, and exits. Otherwise it
// returns at once, and from then on Start accepts Helper and HelperTree.
func HelperMain() {
	helperReady.Store(true)
	value, ok := os.LookupEnv(helperEnv)
	if !ok {
		return
	}
	os.Unsetenv(helperEnv) // the command may be this program too, and must not run as a helper
	number, whole := strings.CutSuffix(value, helperWhole)
	number, setctty := strings.CutSuffix(number, helperSetctty)
	number, setsid := strings.CutSuffix(number, helperSetsid)
	n, err := strconv.Atoi(number)
	if err != nil || len(os.Args) < 3 {
		os.Exit(1)
	}
	s := &shim{files: 3 + n, lifeline: 3 + n, status: 4 + n, whole: whole, closed: make(chan struct{})}
	// This must precede the start of the command: the command must not inherit the status pipe, whose closing shows that
	// the helper has ended, and the helper must adopt even a daemon that the command starts at once.
	unix.CloseOnExec(s.lifeline)
	unix.CloseOnExec(s.status)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	catchSignals()
	s.start(os.Args[1], os.Args[2:], setsid, setctty)
	s.dropFiles()
	go s.watchLifeline()
	s.reap()
}

// catchSignals installs handlers, so that signals meant for the command, or for a program that watches it, do not end
// the helper. It does not ignore them, because the command would inherit that. Signals that were ignored before stay
// ignored, in the command too.
func catchSignals() {
	for _, sig := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// A shim is the state of a helper process.
type shim struct {
	files            int           // number of the command's descriptors, from 0 on
	lifeline, status int           // descriptors of the pipes
	pid              int           // process id of the command
	whole            bool          // HelperTree: do not report exit code 0 before all descendants have ended
	closed           chan struct{} // closed when the supervisor has closed the lifeline, or died

	mu    sync.Mutex      // guards ended and end
	ended bool            // the command has ended
	end   unix.WaitStatus // wait status of the command, if ended is set
}

// start starts the command and reports the result. It exits if the command cannot be started.
func (s *shim) start(path string, args []string, setsid, setctty bool) {
	fds := make([]uintptr, s.files)
	for fd := range fds {
		// Inherited descriptors have no close-on-exec flag. Those with the flag belong to the Go runtime.
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fds[fd] = uintptr(fd); err != nil || flags&unix.FD_CLOEXEC != 0 {
			fds[fd] = ^uintptr(0)
		}
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env: os.Environ(), Files: fds, Sys: &syscall.SysProcAttr{Setsid: setsid, Setctty: setctty, Setpgid: !setsid},
	})
	if err != nil {
		errno := unix.EINVAL
		errors.As(err, &errno)
		s.report(binary.NativeEndian.AppendUint32([]byte{helperFailed}, uint32(errno)))
		unix.Exit(127)
	}
	s.pid = pid
	s.report(binary.NativeEndian.AppendUint32([]byte{helperStarted}, uint32(pid)))
}

func (s *shim) report(b []byte) { _, _ = unix.Write(s.status, b) }

// dropFiles closes the command's files in the helper, and replaces the first three by /dev/null. Otherwise the reader
// of a pipe would see its end only when the helper ends too.
func (s *shim) dropFiles() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range s.files {
		flags, ferr := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		switch {
		case ferr != nil || flags&unix.FD_CLOEXEC != 0:
		case fd > 2 || err != nil || unix.Dup3(null, fd, 0) != nil:
			unix.Close(fd)
		}
	}
}

// watchLifeline waits until the supervisor closes the lifeline or dies, and never returns. After helperLetGo it exits
// at once. Otherwise it kills the descendants until reap exits; after helperKill it stops sooner, see helperKillTime.
func (s *shim) watchLifeline() {
	var b [1]byte
	letGo, watched := false, false
	for {
		n, err := unix.Read(s.lifeline, b[:])
		if n == 1 {
			letGo = letGo || b[0] == helperLetGo
			watched = watched || b[0] == helperKill
		} else if err != unix.EINTR {
			break
		}
	}
	close(s.closed)
	if letGo {
		s.exit()
	}
	// The loop lasts until reap has no child left, and exits. A process that SIGKILL does not end starts no children
	// either, so the pauses grow while no new process is found.
	killed, begun, reported := make(map[procfs.Key]bool), time.Now(), false
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		if killBelow(os.Getpid(), killed) {
			pause = time.Millisecond
		}
		if watched {
			if time.Since(begun) > helperKillTime {
				if !reported {
					s.reportLeft(killed)
				}
				reported = true
				if s.hasEnded() {
					s.exit()
				}
			}
			pause = min(pause, helperKillTime/8)
		}
		time.Sleep(pause)
	}
}

// reportLeft reports the processes in killed that are still alive, or whose state cannot be read.
func (s *shim) reportLeft(killed map[procfs.Key]bool) {
	for key := range killed {
		if p := procfs.StatusOf(key.PID); !p.Known || p.SameAs(key) && !p.Dead() {
			s.report(binary.NativeEndian.AppendUint32([]byte{helperLeft}, uint32(key.PID)))
		}
	}
}

// hasEnded reports whether reap has reaped the command.
func (s *shim) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// killBelow sends SIGKILL to the descendants of root, and adds them to killed. It reports whether it has found any that
// was not in killed before.
func killBelow(root int, killed map[procfs.Key]bool) (fresh bool) {
	kill := func(all []proc) (below []proc) {
		known := map[int]bool{root: true}
		descend(all, known, 0)
		for i := range all {
			if p := &all[i]; known[p.PID] && !p.Dead() {
				fresh = fresh || !killed[p.Key()]
				killed[p.Key()] = true
				signalProc(p.Key(), unix.SIGKILL)
				below = append(below, *p)
			}
		}
		return below
	}
	last := lastPID()
	kill(readTable().all)
	// The processes that have begun since are looked at too: otherwise the helper would never catch up with a program
	// that forks and exits again and again.
	newcomers(last, time.Now().Add(reapTime), func(pids []int) ([]proc, bool) {
		all, complete := statuses(procfs.NewPatience(fullPatience), pids, always)
		return kill(all), complete
	})
	return fresh
}

// reap reaps each child that ends, and reports the end of the command. It exits when no child is left and the lifeline
// is closed.
func (s *shim) reap() {
	runsOn := false // HelperTree: the command has exited with 0, and counts as running until no child is left
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			if runsOn {
				s.report([]byte{helperAlone})
			}
			<-s.closed
			s.exit()
		case pid == s.pid:
			s.mu.Lock()
			s.end, s.ended = status, true
			s.mu.Unlock()
			end := byte(helperEnded)
			if alone() {
				end = helperAlone
			} else if runsOn = s.whole && status.Exited() && status.ExitStatus() == 0; runsOn {
				continue
			}
			s.report([]byte{end})
		}
	}
}

// alone reaps the children that have ended, and reports whether no child is left.
func alone() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// exit ends the helper with the exit code or the signal of the command, or with exit code 1 if the command has not
// ended. It avoids os.Exit, which takes a second under the race detector.
func (s *shim) exit() {
	s.mu.Lock() // never unlocked: of reap and watchLifeline, the first to call exit decides how the helper ends
	switch {
	case !s.ended:
		unix.Exit(1)
	case s.end.Signaled():
		dieOf(s.end.Signal())
		unix.Exit(128 + int(s.end.Signal()))
	}
	unix.Exit(s.end.ExitStatus())
}

// dieOf ends this process by sig, without a core file: if the command left one, it must not be overwritten. If sig does
// not end the process, dieOf returns after a second.
func dieOf(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// An action of zeros is the default action. It replaces the handlers of the Go runtime, some of which print stacks.
	var action [64]byte
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second)
}
