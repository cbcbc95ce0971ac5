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
	// mostNotices are the datagrams of a second that count. A program that beats in a loop costs no more than this.
	mostNotices = 100
	// After floodSize datagrams that do not count, the rest waits for floodPause in the socket, where it costs its sender
	// something and nobody else. The queue is short, so that a heartbeat behind it does not come late.
	floodSize  = 64
	floodPause = 10 * time.Millisecond
	// lateEvery is the least time between two datagrams beyond mostNotices that are read for the same key.
	lateEvery = 10 * time.Millisecond
	// mostLeft is how many datagrams are read that the command has left at its end.
	mostLeft = 1000
)

// notices is the receiving side of the socket. Its goroutine alone reads, and changes what mu does not guard.
type notices struct {
	ready, stopping chan struct{}
	cells           atomic.Pointer[[]*pulse.Cell] // of the executions that hear it; never changed in place

	listening
	inMemory         bool                     // the directory of the socket is in memory
	over             chan struct{}            // closed when the command has ended
	done             chan struct{}            // closed when nothing is read any more
	since            time.Time                // when the present second began
	receivedInSecond int                      // datagrams in that second
	late             [sdnotify.Keys]time.Time // when one beyond mostNotices was read for a key
	flood            int                      // datagrams that did not count, since the last pause

	mu       sync.Mutex
	received Notices

	holding sync.Mutex // guards the fields below; no heartbeat waits for it
	ended   bool
	holds   []hold // of EXTEND_TIMEOUT_USEC
}

// offer makes the socket, and puts it and the limits into the environment of cmd. ctx is that of the command's
// execution.
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

// environ returns env with the variables of the protocol. end is zero if there is no deadline.
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

// begin begins to receive.
func (n *notices) begin() {
	n.over, n.done = make(chan struct{}), make(chan struct{})
	go n.receive()
}

// sharedMemory is where Linux has files in memory. A directory is made there in a fiftieth of the time that a disk
// takes for it, and the file system answers.
const sharedMemory = "/dev/shm"

// listen makes the socket, unless ctx ends while the file system does not answer.
func (n *notices) listen(ctx context.Context, attr *syscall.SysProcAttr) error {
	if _, set := os.LookupEnv("TMPDIR"); !set && runtime.GOOS == "linux" {
		if l := listenIn(sharedMemory, attr); l.err == nil {
			n.listening, n.inMemory = l, true
			return nil
		}
	}
	made := make(chan listening, 1)
	if err := patient.Until(ctx, os.TempDir(), func() { made <- listenIn(os.TempDir(), attr) }); err != nil {
		go func() {
			if late := <-made; late.err == nil {
				_ = late.socket.Close()
				late.remove()
			}
		}()
		return err
	}
	if n.listening = <-made; n.err != nil {
		return fmt.Errorf("procgroup: Notify: %w", n.err)
	}
	return nil
}

// A listening is a socket in a directory of its own, which is nil on a simulated machine.
type listening struct {
	socket sdnotify.Socket // nil if there is none
	dir    *scratch.Dir
	err    error
}

func listenIn(parent string, attr *syscall.SysProcAttr) (l listening) {
	if l.dir, l.err = scratch.MakeOften(parent); l.err != nil {
		return l
	}
	if l.socket, l.err = sdnotify.Listen(l.dir.Path(), attr); l.err != nil {
		_ = l.dir.Remove()
	}
	return l
}

func (l listening) remove() {
	_ = os.Remove(filepath.Join(l.dir.Path(), sdnotify.Name)) // otherwise the removal would have to read the directory
	_ = l.dir.Remove()
}

// receive reads the datagrams until the end.
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
			pause := time.NewTimer(floodPause)
			select {
			case <-pause.C:
			case <-n.over:
			}
			pause.Stop()
		}
	}
}

// take does what a datagram says. It reports false if the datagram is dropped.
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

// snapshot returns what was said so far.
func (n *notices) snapshot() Notices {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.received
}

// rare reports whether a datagram beyond mostNotices says something that no other has said lately.
func (n *notices) rare(b []byte, now time.Time) (rare bool) {
	for i, says := range sdnotify.Says(b) {
		if says && now.Sub(n.late[i]) >= lateEvery {
			n.late[i], rare = now, true
		}
	}
	return rare
}

// A hold suspends the idle checks of one execution, and ends by itself.
type hold struct {
	release func()
	until   pulse.Timer
}

// extend holds the idle checks for d from now on, in place of earlier holds.
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
	for _, h := range before { // after the new ones have begun
		h.until.Stop()
		h.release()
	}
}

// end reads what the command has left in the socket, and removes the socket, if the file system answers by then.
// Call it when nothing more is to be heard.
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
