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

// With the Helper containment, this process starts its own program a second time, as the helper, and the helper starts
// the command. The helper is a subreaper, which this process must never be: it adopts and reaps the command's
// descendants. It kills all of them when its lifeline is closed, a pipe whose write end only this process has.
//
// Over a second pipe the helper reports whether the command was started, and later that the command has ended. It stays
// as the parent of what the command has left behind until the lifeline is closed, and then ends with the command's exit
// status. If a descendant kills the helper, this process still finds the descendants, as with Descendants.

// helperEnv is the environment variable that makes this program run as a helper. Its value is the number of extra files
// of the command and, in this order, any of three suffixes: helperSetsid, if the command gets a session of its own;
// helperSetctty, if its standard input is the terminal of that session; helperWhole, for HelperTree.
const (
	helperEnv     = "TOOLDEADLINE_HELPER"
	helperSetsid  = ",setsid"
	helperSetctty = ",setctty"
	helperWhole   = ",whole"
)

// The helper's reports are bytes. A 4-byte number in the byte order of the machine follows helperStarted, helperFailed
// and helperLeft.
const (
	helperStarted = 'S' // the command is running; followed by its process id
	helperFailed  = 'E' // the command could not be started; followed by the error number
	helperEnded   = 'X' // the command has ended, and a process that it has started is left
	helperAlone   = 'A' // the command has ended, and no process that it has started is left
	helperLeft    = 'L' // followed by the id of a process that the helper may not kill
)

// This process may write helperLetGo or helperKill to the lifeline before it closes it. After helperLetGo the helper
// ends without killing anything. After helperKill the helper kills for helperKillTime, reports the processes that it
// could not kill, and ends once the command has ended; this process kills the rest.
const (
	helperLetGo = 'R'
	helperKill  = 'K'

	helperKillTime = reapTime / 2
)

// helperStartTime bounds the wait for the report of the start: the program may hang before it calls HelperMain.
const helperStartTime = 30 * time.Second

// helperEndTime bounds the wait for the end of a helper whose command has ended by itself. The wait may outlast the
// deadline, because only the helper has the exit status, and a busy machine may delay it. No limit can fire then.
const helperEndTime = 5 * time.Second

// A helper has this process's ends of the two pipes to a helper process.
type helper struct {
	lifeline *os.File // the write end
	status   *os.File // the read end
	session  bool     // the command leads a session of its own
	ended    bool     // the helper has reported the end of the command, or has ended itself
	alone    bool     // the helper has reported helperAlone
}

// awaitStart waits for the report of the start. If the helper could not start the command, the error is an
// *os.PathError, as that of cmd.Start. If ctx is done first, awaitStart returns ctx.Err().
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

// wait implements Tree.Wait: it waits for the report that the command has ended, or for the end of the helper.
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

// readNow reads reports without waiting. It returns EAGAIN if there are none, and 0 and a nil error if the helper has
// closed the pipe. It does not use h.status.Read, which returns no data once the read deadline has passed, even if
// there is data: on a busy machine any deadline may pass before the read.
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

// killTree makes the helper kill all descendants and end, and waits for its end for two thirds of the time until the
// deadline. It returns the processes that the helper may not kill, such as a set-user-ID program that the command of
// an ordinary user has started.
func (h *helper) killTree(l *leader, deadline time.Time) (left []int) {
	h.tell(helperKill, l)
	if h.ended {
		l.wait(context.Background(), time.Now().Add(helperEndTime))
	}
	// The caller needs the last third to kill the processes that the helper has not killed.
	l.wait(context.Background(), time.Now().Add(time.Until(deadline)*2/3))
	return h.left()
}

// left returns the processes in the helper's helperLeft reports. It discards all other reports.
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

// letGo makes the helper end without killing anything. It kills a helper that has not ended after two thirds of the
// time until the deadline.
func (h *helper) letGo(l *leader, deadline time.Time) {
	h.tell(helperLetGo, l)
	if !l.wait(context.Background(), time.Now().Add(time.Until(deadline)*2/3)) {
		_ = l.signalGroup(unix.SIGKILL)
		l.wait(context.Background(), deadline)
	}
}

// tell writes what to the lifeline, and closes it.
func (h *helper) tell(what byte, l *leader) {
	_, _ = h.lifeline.Write([]byte{what})
	h.lifeline.Close()
	_ = l.signalGroup(unix.SIGCONT) // the helper may be stopped
}

func (h *helper) close() {
	h.lifeline.Close()
	h.status.Close()
}

// helperReady is set when HelperMain is called: only a program that calls it runs as a helper when it is started again.
var helperReady atomic.Bool
