package proctree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The Helper containment puts a process between this one and the command: this program,
// started again. It adopts every descendant (it is a subreaper, which this process must
// never be), reaps them, and kills them all when its lifeline ends: a pipe of which this
// process has the other end, and nobody else.
//
// Over a second pipe it reports how the start went, and then that the command has ended.
// It stays, so that what the command has left behind has a parent, until the lifeline is
// closed; then it ends as the command did. A descendant that kills the helper is still
// found as with Descendants, as long as this process lives.

// helperEnv is the environment variable that makes this program run as a helper. Its value is the number of extra
// files, and whether the command gets a session of its own, with its standard input as the terminal, and whether it
// runs until the last of its processes has ended.
const (
	helperEnv     = "TOOLDEADLINE_HELPER"
	helperSetsid  = ",setsid"
	helperSetctty = ",setctty"
	helperWhole   = ",whole"
)

// The helper's reports: a byte and, except for the end, a number of 4 bytes.
const (
	helperStarted = 'S' // with the process id
	helperFailed  = 'E' // with the error number
	helperEnded   = 'X' // the command has ended, and something that it has started is alive
	helperAlone   = 'A' // the command has ended, and nothing of it is left
	helperLeft    = 'L' // with the process id of what it may not kill
)

// The messages on the lifeline before it is closed. After helperLetGo the helper must end without killing anything.
// helperKill means that this process is alive and takes over what the helper cannot kill within helperKillTime; the
// helper then ends as the command did.
const (
	helperLetGo = 'R'
	helperKill  = 'K'

	helperKillTime = reapTime / 2
)

// helperStartTime bounds the start: the program may hang before its main.
const helperStartTime = 30 * time.Second

// helperEndTime is how long a helper may take to end, on a busy machine, after its command has ended by itself: only
// the helper has the exit status. At that time no limit can fire.
const helperEndTime = 5 * time.Second

// A helper is this process's side of the two pipes to a helper process.
type helper struct {
	lifeline *os.File // nothing is written until the end
	status   *os.File
	ended    bool // the command has ended, as the helper has reported, or the helper has
	alone    bool // the helper has reported that nothing of the command is left
}

// awaitStart returns the error of starting the command, in the form of os/exec, or that of
// ctx if it is done first.
func (h *helper) awaitStart(ctx context.Context, path string) error {
	var report [5]byte
	_ = h.status.SetReadDeadline(time.Now().Add(helperStartTime))
	stop := context.AfterFunc(ctx, func() { _ = h.status.SetReadDeadline(longAgo) })
	defer stop()
	for n := 0; n < len(report); {
		m, err := h.status.Read(report[n:])
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("procgroup: the helper did not start the command: %w", err)
		}
		n += m
	}
	switch report[0] {
	case helperStarted:
		return nil
	case helperFailed:
		return &os.PathError{Op: "fork/exec", Path: path, Err: unix.Errno(binary.NativeEndian.Uint32(report[1:]))}
	}
	return errors.New("procgroup: the helper sent an unknown report")
}

// wait implements Tree.Wait: it waits for the report, or for the end of the helper.
func (h *helper) wait(ctx context.Context, deadline time.Time) bool {
	if h.ended {
		return true
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = h.status.SetReadDeadline(longAgo) })
		defer stop()
	}
	for {
		_ = h.status.SetReadDeadline(deadline)
		read, over := h.status.Read, ctx.Err() != nil || (!deadline.IsZero() && !time.Now().Before(deadline))
		if over {
			read = h.readNow
		}
		var report [1]byte
		n, err := read(report[:])
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) && err != unix.EAGAIN {
			h.ended, h.alone = true, n > 0 && report[0] == helperAlone
			return true
		}
		if over {
			return false
		}
	}
}

// readNow reads what has been reported, without waiting. If there is nothing it returns EAGAIN, or no bytes at the
// end. A read with a deadline returns nothing of what is there if the deadline has passed before it, which on a
// busy machine it may have, however short the time.
func (h *helper) readNow(p []byte) (n int, err error) {
	status, err := h.status.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = status.Control(func(fd uintptr) {
		for {
			if n, failed = unix.Read(int(fd), p); failed != unix.EINTR {
				return
			}
		}
	})
	return max(n, 0), cmp.Or(err, failed)
}

// killTree makes the helper kill everything, and end. It returns the processes that the helper may not kill, such as
// a set-user-ID program that the command of an ordinary user runs.
func (h *helper) killTree(l *leader, deadline time.Time) (left []int) {
	_, _ = h.lifeline.Write([]byte{helperKill})
	h.lifeline.Close()
	_ = l.signalGroup(unix.SIGCONT) // it may be stopped
	if h.ended {
		l.wait(context.Background(), time.Now().Add(helperEndTime))
	}
	// The caller kills the processes itself if the helper cannot, and needs a third of the time for that.
	l.wait(context.Background(), time.Now().Add(time.Until(deadline)*2/3))
	return h.left()
}

// left returns the processes that the helper has reported because it may not kill them. It skips the other reports,
// and nothing is read from the helper afterwards.
func (h *helper) left() (pids []int) {
	var all []byte
	for buf := make([]byte, 512); ; {
		n, err := h.readNow(buf)
		if n == 0 || err != nil {
			break
		}
		all = append(all, buf[:n]...)
	}
	for len(all) > 0 {
		if all[0] != helperLeft || len(all) < 5 {
			all = all[1:]
			continue
		}
		pids = append(pids, int(binary.NativeEndian.Uint32(all[1:])))
		all = all[5:]
	}
	return pids
}

// letGo makes the helper end without killing anything.
func (h *helper) letGo(l *leader, deadline time.Time) {
	_, _ = h.lifeline.Write([]byte{helperLetGo})
	h.lifeline.Close()
	_ = l.signalGroup(unix.SIGCONT) // it may be stopped
	if !l.wait(context.Background(), time.Now().Add(time.Until(deadline)*2/3)) {
		_ = l.signalGroup(unix.SIGKILL)
		l.wait(context.Background(), deadline)
	}
}

func (h *helper) close() {
	h.lifeline.Close()
	h.status.Close()
}

// helperReady is true once HelperMain was called, so that this program, started again, will be a helper and not
// itself.
var helperReady atomic.Bool
