package procgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/scratch"
)

const (
	// mostNotices is the number of datagrams that take effect in a second, so that a program that sends in a loop costs
	// little.
	mostNotices = 100
	// After floodSize dropped datagrams, the receiver pauses for floodPause. Meanwhile the queue of the socket fills,
	// and senders block. The queue is short, so that a heartbeat at its end is read soon.
	floodSize  = 64
	floodPause = 10 * time.Millisecond
	// lateEvery is the minimum time between two datagrams with the same key that take effect beyond mostNotices.
	lateEvery = 10 * time.Millisecond
	// mostLeft bounds the number of datagrams that are read after the end of the command.
	mostLeft = 1000
)

// notices is the receiving end of the socket. One goroutine receives, and alone uses the fields that no mutex guards.
type notices struct {
	ready, stopping chan struct{}                 // closed at READY=1 and STOPPING=1
	cells           atomic.Pointer[[]*pulse.Cell] // of the executions that the messages affect; replaced, never changed

	listening
	inMemory         bool                     // the directory of the socket is in memory
	over             chan struct{}            // closed by end
	done             chan struct{}            // closed when the goroutine has ended
	since            time.Time                // start of the current second
	receivedInSecond int                      // number of datagrams received in that second
	late             [sdnotify.Keys]time.Time // when a datagram beyond mostNotices last took effect, by key
	flood            int                      // number of datagrams dropped since the last pause

	mu       sync.Mutex // guards received
	received Notices

	holding sync.Mutex // guards the fields below; no heartbeat waits for it
	ended   bool       // extend suspends nothing any more
	holds   []hold     // the suspensions of the newest EXTEND_TIMEOUT_USEC
}

// offer makes the socket, adds its address and the limits to the environment of cmd, and begins to receive. ctx is the
// context of the command's execution.
func (n *notices) offer(ctx context.Context, cmd *exec.Cmd) error {
	if sim := machine.Of(ctx); sim != nil {
		n.socket = sim.Socket()
	} else if err := n.listen(ctx, cmd.SysProcAttr); err != nil {
		return err
	}
	n.cells.Store(&[]*pulse.Cell{pulse.Of(ctx)})
	at, _ := ctx.Deadline()
	cmd.Env = n.environ(cmd.Environ(), pulse.Of(ctx).SmallestIdle(), at)
	n.begin()
	return nil
}

// environ returns env, which it may change, with the variables of the protocol. A zero idle or end means that there is
// no such limit.
func (n *notices) environ(env []string, idle time.Duration, end time.Time) []string {
	env = slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "NOTIFY_SOCKET" || name == "WATCHDOG_PID" || name == "WATCHDOG_USEC" || name == "TOOL_DEADLINE"
	})
	env = append(env, "NOTIFY_SOCKET="+n.socket.Addr())
	if idle := idle.Microseconds(); idle > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(idle, 10))
	}
	if !end.IsZero() {
		env = append(env, "TOOL_DEADLINE="+time.Now().Add(time.Until(end)).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	return env
}

// begin starts the goroutine that receives.
func (n *notices) begin() {
	n.ready, n.stopping = make(chan struct{}), make(chan struct{})
	n.over, n.done = make(chan struct{}), make(chan struct{})
	go n.receive()
}

// sharedMemory is a directory of Linux that is kept in memory. Making a subdirectory takes a fiftieth of the time that
// it takes on a disk, and cannot hang.
const sharedMemory = "/dev/shm"

// listen makes the socket: in sharedMemory, or in TMPDIR if that is set or sharedMemory cannot be used. If ctx is done
// before the file system answers, listen returns the error of ctx. A socket that is made later is removed.
func (n *notices) listen(ctx context.Context, attr *syscall.SysProcAttr) error {
	if _, set := os.LookupEnv("TMPDIR"); !set && runtime.GOOS == "linux" {
		if l, err := listenIn(sharedMemory, attr); err == nil {
			n.listening, n.inMemory = l, true
			return nil
		}
	}
	l, err := patient.Get(ctx, os.TempDir(), func() (listening, error) { return listenIn(os.TempDir(), attr) }, func(late listening) {
		_ = late.socket.Close()
		late.remove()
	})
	if err != nil && err != ctx.Err() {
		return fmt.Errorf("procgroup: Notify: %w", err)
	}
	n.listening = l
	return err
}

// A listening is a socket in its own directory.
type listening struct {
	socket sdnotify.Socket // nil if there is none
	dir    *scratch.Dir    // nil in a simulation
}

// listenIn makes a socket in a new directory of parent. attr is that of the command, which must be able to use it.
func listenIn(parent string, attr *syscall.SysProcAttr) (l listening, err error) {
	if l.dir, err = scratch.MakeOften(parent); err != nil {
		return listening{}, err
	}
	if l.socket, err = sdnotify.Listen(l.dir.Path(), attr); err != nil {
		_ = l.dir.Remove()
		return listening{}, err
	}
	return l, nil
}

// remove removes the directory with the socket.
func (l listening) remove() {
	_ = os.Remove(filepath.Join(l.dir.Path(), sdnotify.Name)) // first, so that dir.Remove need not read the directory
	_ = l.dir.Remove()
}

// receive reads datagrams until the socket is stopped and empty, or until it has read mostLeft datagrams after over was
// closed.
func (n *notices) receive() {
	defer close(n.done)
	b := make([]byte, sdnotify.MaxSize+1)
	left := mostLeft
	for {
		size, mine, err := n.socket.Receive(b)
		if err != nil {
			return
		}
		if !mine || !n.take(b, size) {
			n.flood++
		}
		select {
		case <-n.over:
			if left--; left == 0 {
				return
			}
			continue
		default:
		}
		if n.flood >= floodSize {
			n.flood = 0
			patient.Wait(n.over, time.Now().Add(floodPause))
		}
	}
}

// take handles a datagram of the given size, whose bytes are at the start of b. It returns false if it drops the
// datagram.
func (n *notices) take(b []byte, size int) bool {
	now := time.Now()
	if now.Sub(n.since) >= time.Second {
		n.since, n.receivedInSecond = now, 0
	}
	n.receivedInSecond++
	if size > sdnotify.MaxSize || n.receivedInSecond > mostNotices && !n.rare(b[:size], now) {
		n.mu.Lock()
		n.received.Dropped++
		n.mu.Unlock()
		return false
	}
	m := sdnotify.Parse(b[:size])
	if m.Said {
		var detail any = m.Status
		for _, c := range *n.cells.Load() {
			c.Describe(&detail)
		}
	}
	if m.Beat {
		for _, c := range *n.cells.Load() {
			c.Beat()
		}
	}
	if m.Extended {
		n.extend(m.Extend)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.Said {
		n.received.Status = m.Status
	}
	if m.Ready && !n.received.Ready {
		n.received.Ready = true
		close(n.ready)
	}
	if m.Stopping && !n.received.Stopping {
		n.received.Stopping = true
		close(n.stopping)
	}
	return true
}

// snapshot returns the states that were received so far.
func (n *notices) snapshot() Notices {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.received
}

// rare reports whether a datagram beyond mostNotices takes effect, because for one of its keys no such datagram has
// taken effect in the last lateEvery. It records now for those keys.
func (n *notices) rare(b []byte, now time.Time) (rare bool) {
	for i, says := range sdnotify.Says(b) {
		if says && now.Sub(n.late[i]) >= lateEvery {
			n.late[i], rare = now, true
		}
	}
	return rare
}

// A hold is a suspension of the idle checks of one execution and of those that enclose it.
type hold struct {
	release func()
	until   pulse.Timer // calls release
}

// extend suspends the idle checks for d from now on, in place of earlier suspensions. After end it only ends them.
func (n *notices) extend(d time.Duration) {
	n.holding.Lock()
	defer n.holding.Unlock()
	before := n.holds
	n.holds = nil
	for _, c := range *n.cells.Load() {
		if d > 0 && !n.ended {
			release := c.Hold()
			n.holds = append(n.holds, hold{release, pulse.AfterFunc(c.Clock(), d, release)})
		}
	}
	for _, h := range before { // after the new holds have begun, so that no idle check runs in between
		h.until.Stop()
		h.release()
	}
}

// end reads the datagrams that are left in the socket, ends the suspensions, and removes the socket; it waits for the
// file system until the given time. If there is no socket, it does nothing. Call it once, when the command has ended.
func (n *notices) end(until time.Time) {
	if n.socket == nil {
		return
	}
	close(n.over)
	n.socket.Stop()
	<-n.done
	n.holding.Lock()
	n.ended = true
	n.holding.Unlock()
	n.extend(0)
	_ = n.socket.Close()
	switch {
	case n.inMemory:
		n.remove()
	case n.dir != nil:
		patient.Within(time.Until(until), n.dir.Path(), n.remove)
	}
}
