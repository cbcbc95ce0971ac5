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

// This file is the helper's side, see helper_linux.go.

// HelperMain runs the helper and does not return, if this process was started as one. Otherwise it returns at once,
// and this process can start helpers from then on.
func HelperMain() {
	helperReady.Store(true)
	value, ok := os.LookupEnv(helperEnv)
	if !ok {
		return
	}
	os.Unsetenv(helperEnv) // the command may be this program, too, and must not become a helper
	number, whole := strings.CutSuffix(value, helperWhole)
	number, setctty := strings.CutSuffix(number, helperSetctty)
	number, setsid := strings.CutSuffix(number, helperSetsid)
	n, err := strconv.Atoi(number)
	if err != nil || len(os.Args) < 3 {
		os.Exit(1)
	}
	s := &shim{files: 3 + n, lifeline: 3 + n, status: 4 + n, whole: whole, closed: make(chan struct{})}
	// This must precede the start: the command must not hold the status pipe, whose end shows that the helper has
	// ended, and a daemon that it starts at once must get the helper as its parent.
	unix.CloseOnExec(s.lifeline)
	unix.CloseOnExec(s.status)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	catchSignals()
	s.start(os.Args[1], os.Args[2:], setsid, setctty)
	s.dropFiles()
	go s.watchLifeline()
	s.reap()
}

// catchSignals keeps signals that are meant for the command, or for a program that watches it, from ending the
// helper. A signal that was ignored stays ignored, in the command too; ignoring the others would have the command
// ignore them as well.
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
	files            int // the descriptors below this one are the command's
	lifeline, status int
	pid              int           // of the command
	whole            bool          // a command that exits with 0 runs until everything that it has started has ended
	closed           chan struct{} // closed when the supervisor has let go, or died

	mu    sync.Mutex
	ended bool
	end   unix.WaitStatus // of the command, once it has ended
}

func (s *shim) start(path string, args []string, setsid, setctty bool) {
	fds := make([]uintptr, s.files)
	for fd := range fds {
		// Only what was handed over has no close-on-exec flag; the rest is the runtime's.
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

// dropFiles closes the files that the command was given: otherwise a reader of a pipe would wait for the helper, too.
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

// watchLifeline waits until the supervisor closes the lifeline or dies.
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
	// The loop lasts until reap has nothing left to wait for, and exits. A process that cannot die cannot have children
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

// reportLeft reports the processes that were killed and are still alive: this user may not kill them.
func (s *shim) reportLeft(killed map[procfs.Key]bool) {
	for key := range killed {
		if p := procfs.StatusOf(key.PID); !p.Known || p.SameAs(key) && !p.Dead() {
			s.report(binary.NativeEndian.AppendUint32([]byte{helperLeft}, uint32(key.PID)))
		}
	}
}

// hasEnded reports whether the command has ended.
func (s *shim) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// killBelow kills the descendants of a process, and reports whether there are any that
// were not killed before.
func killBelow(root int, killed map[procfs.Key]bool) (fresh bool) {
	kill := func(all []proc) (below []proc) {
		known := map[int]bool{root: true}
		for grown := true; grown; {
			grown = false
			for i := range all {
				if p := &all[i]; known[p.Parent] && !known[p.PID] {
					known[p.PID], grown = true, true
				}
			}
		}
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
	// Without a look at the processes that have begun since, the helper would never catch up with a chain of daemons.
	newcomers(last, time.Now().Add(reapTime), func(pids []int) ([]proc, bool) {
		all, complete := statuses(procfs.NewPatience(fullPatience), pids, always)
		return kill(all), complete
	})
	return fresh
}

// reap reaps each child that ends, and exits when nothing is left and the supervisor has let go.
func (s *shim) reap() {
	runsOn := false // the command has exited with 0, and runs on as long as anything that it has started does
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

// alone reaps the children that have ended, and reports whether none is left to reap.
func alone() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// exit ends the helper as the command ended. It does without os.Exit, in which the race detector waits for a second.
func (s *shim) exit() {
	s.mu.Lock() // never unlocked: reap and watchLifeline may both come here, and the first decides how the helper ends
	switch {
	case !s.ended:
		unix.Exit(1)
	case s.end.Signaled():
		dieOf(s.end.Signal())
		unix.Exit(128 + int(s.end.Signal()))
	}
	unix.Exit(s.end.ExitStatus())
}

// dieOf ends this process by a signal, without a core: the command has left its own.
func dieOf(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// All zeros is the default action. The runtime has handlers for everything, some of
	// which print stacks.
	var action [64]byte
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second)
}
