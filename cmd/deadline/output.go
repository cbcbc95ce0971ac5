//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

const (
	// lastWords is how long what the command leaves running may still write.
	lastWords = 300 * time.Millisecond
	// pieceSize is how much is written at once: what a pipe takes whole or not at all, so
	// that it is known how much has not been taken.
	pieceSize = 4 << 10
)

// An output passes on what the command writes.
type output struct {
	forCommand []*os.File
	pipes      []*pipe
	once       sync.Once
	done       chan struct{} // closed when all has been passed on
}

// A pipe is one that the command writes to.
type pipe struct {
	r, w   *os.File
	to     io.Writer
	report func(format string, args ...any)

	read, written atomic.Int64 // bytes
	refused       atomic.Bool  // whoever took our output does not any more
	abandoned     atomic.Bool  // nothing more is to be written

	mu      sync.Mutex
	ctx     context.Context // of the execution whose heartbeat the output is
	waiting bool            // for whoever takes our output
	release func()          // of the hold that goes with it
}

// newOutput makes the pipes. Where both streams are the same file, as with 2>&1, they
// share one, so that what was written first comes first.
func newOutput(streams []*os.File, st *status, rep *reporter) (*output, error) {
	o := &output{forCommand: append([]*os.File(nil), streams...), done: make(chan struct{})}
	for fd := 1; fd <= 2; fd++ {
		if streams[fd] == nil {
			continue
		}
		if fd == 2 && streams[1] != nil && same(streams[1], streams[2]) {
			o.forCommand[2] = o.forCommand[1]
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		to, err := duplicate(fd)
		if err != nil {
			return nil, err
		}
		p := &pipe{r: r, w: w, to: to, report: rep.say}
		if st != nil {
			p.to = st.output(to)
		}
		o.forCommand[fd] = w
		o.pipes = append(o.pipes, p)
	}
	return o, nil
}

// duplicate returns a standard stream under another number. Where a write to the numbers 1
// and 2 fails, package os sends us the SIGPIPE that blockSIGPIPE has kept away.
func duplicate(fd int) (*os.File, error) {
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(other), "stream"), nil
}

func same(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// closeForCommand closes our copies of the command's ends.
func (o *output) closeForCommand() {
	for _, p := range o.pipes {
		p.w.Close()
	}
}

// start begins to pass on. ctx is that of the execution whose heartbeat the output is, until
// the next call.
func (o *output) start(ctx context.Context) {
	for _, p := range o.pipes {
		p.beatFor(ctx)
	}
	o.once.Do(func() {
		var all sync.WaitGroup
		for _, p := range o.pipes {
			all.Go(p.copy)
		}
		go func() {
			all.Wait()
			close(o.done)
		}()
	})
}

// commandEnded has done closed soon, as far as it depends on the command and on what it
// has left running.
func (o *output) commandEnded() {
	for _, p := range o.pipes {
		_ = p.r.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// abandon ends the passing on, and returns how many bytes that were written by the command
// have not been taken.
func (o *output) abandon() (lost int64) {
	for _, p := range o.pipes {
		p.abandoned.Store(true)
		if !p.refused.Load() {
			lost += p.read.Load() - p.written.Load() + int64(unread(p.r))
		}
	}
	return lost
}

// copy passes on until the pipe has no writer any more, or nobody takes the output. In
// that case the pipe is closed, so that the command notices as if it wrote there itself.
func (p *pipe) copy() {
	blockSIGPIPE()
	defer p.r.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := p.r.Read(buf)
		if n > 0 && !p.pass(buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.copyRest(buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// copyRest passes on what is in the pipe now. What the command itself has written is all
// there; a bound is needed only against what it has left running.
func (p *pipe) copyRest(buf []byte) {
	_ = p.r.SetReadDeadline(time.Time{})
	for rest := unread(p.r); rest > 0; {
		n := readNow(p.r, buf[:min(rest, len(buf))])
		if n == 0 || !p.pass(buf[:n]) {
			return
		}
		rest -= n
	}
}

// pass writes b.
func (p *pipe) pass(b []byte) (ok bool) {
	p.read.Add(int64(len(b)))
	p.wait()
	defer p.taken()
	for len(b) > 0 {
		if p.abandoned.Load() {
			return false
		}
		n, err := p.to.Write(b[:min(len(b), pieceSize)])
		p.written.Add(int64(n))
		b = b[n:]
		if err != nil {
			p.refused.Store(true)
			if !errors.Is(err, unix.EPIPE) {
				p.report("write error: %s", reason(err))
			}
			return false
		}
	}
	return true
}

// wait and taken stand around the time in which somebody has to take our output. The hold
// is a heartbeat at both ends, and it keeps the idle limit off in between: the command is
// not to blame for that time.
func (p *pipe) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = true
	p.release = heartbeat.Hold(p.ctx)
}

func (p *pipe) taken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	p.release()
}

// beatFor makes ctx the execution whose heartbeat the output is.
func (p *pipe) beatFor(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	if p.waiting {
		p.release()
		p.release = heartbeat.Hold(ctx)
	}
}

// unread returns how many bytes are in a pipe.
func unread(f *os.File) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	return n
}

// readNow reads what is in a pipe, without waiting for more. It returns 0 if there is
// nothing.
func readNow(f *os.File, p []byte) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = unix.Read(int(fd), p)
		return true
	})
	return max(n, 0)
}
