//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

const (
	// lastWords is how long processes that the command leaves running may still write.
	lastWords = 300 * time.Millisecond
	// settling is how long a write may take to notice that it was ended.
	settling = 100 * time.Millisecond
	// pieceSize is the size of a write: a pipe takes that much as a whole or not at all, so it is known
	// how much was not read.
	pieceSize = 4 << 10
)

// An output passes on the output of the command.
type output struct {
	forCommand []*os.File
	pipes      []*pipe
	once       sync.Once
	done       chan struct{} // closed when everything has been passed on
}

// A pipe is written by the command.
type pipe struct {
	r, w   *os.File
	file   *stdio.File // the file of the output
	report func(format string, args ...any)

	read, written atomic.Int64 // bytes
	refused       atomic.Bool  // the reader of the output has gone
	abandoned     atomic.Bool  // nothing more may be written

	mu      sync.Mutex
	ctx     context.Context // of the execution that the output beats for
	over    chan struct{}   // closed at the end of a wait for the reader of the output; nil if nothing waits
	release func()          // ends the hold during the wait
}

// newOutput makes the pipes. If both streams are the same file, as with 2>&1, they share one pipe, so
// that the order of their output is kept.
func newOutput(streams []*os.File, rep *reporter) (*output, error) {
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
		p := &pipe{r: r, w: w, file: stdio.New(to), report: rep.say}
		o.forCommand[fd] = w
		o.pipes = append(o.pipes, p)
	}
	return o, nil
}

// duplicate returns a standard stream under another descriptor. If a write to descriptor 1 or 2 fails,
// package os raises SIGPIPE even where blockSIGPIPE has blocked it.
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

// closeForCommand closes deadline's copies of the command's ends.
func (o *output) closeForCommand() {
	for _, p := range o.pipes {
		p.w.Close()
	}
}

// start begins to pass on output. The output beats for the execution of ctx until the next call.
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

// commandEnded bounds the wait for further output: the command has ended, and processes that it has
// left running have lastWords.
func (o *output) commandEnded() {
	for _, p := range o.pipes {
		_ = p.r.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// abandon stops passing on output. It returns how many bytes of the command's output nobody has read.
func (o *output) abandon() (lost int64) {
	for _, p := range o.pipes {
		p.abandoned.Store(true)
		p.file.Close() // ends a wait for a file that does not block
		p.settle()
		if !p.refused.Load() {
			lost += p.read.Load() - p.written.Load() + int64(unread(p.r))
		}
	}
	return lost
}

// copy passes on output until the pipe has no writer or the output has no reader. In the latter case
// copy closes the pipe, so that the next write of the command fails as a write to the output would.
func (p *pipe) copy() {
	blockSIGPIPE()
	defer func() {
		if !p.abandoned.Load() { // otherwise abandon counts what is in the pipe
			p.r.Close()
		}
	}()
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

// copyRest passes on what is in the pipe now, which includes everything that the command itself wrote.
// What processes that the command has left running write later is not passed on.
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

// pass writes b. It reports false if the output has no reader or was abandoned.
func (p *pipe) pass(b []byte) (ok bool) {
	p.read.Add(int64(len(b)))
	p.beginWait()
	defer p.endWait()
	for len(b) > 0 {
		if p.abandoned.Load() {
			return false
		}
		n, err := p.file.Write(b[:min(len(b), pieceSize)])
		p.written.Add(int64(n))
		b = b[n:]
		if err != nil && p.abandoned.Load() {
			return false
		}
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

// beginWait and taken enclose the time in which a write waits for the reader of the output. The hold is a
// heartbeat at both ends and suspends the idle limit in between: the command is not to blame for that
// time.
func (p *pipe) beginWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = make(chan struct{})
	p.release = heartbeat.Hold(p.ctx)
}

// settle waits until a write that Close has ended has counted what it wrote. It does not wait for a write that
// blocks.
func (p *pipe) settle() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-time.After(settling):
	}
}

func (p *pipe) endWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.over)
	p.over = nil
	p.release()
}

// beatFor makes the output beat for the execution of ctx.
func (p *pipe) beatFor(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	if p.over != nil {
		p.release()
		p.release = heartbeat.Hold(ctx)
	}
}

// unread returns how many bytes are in a pipe, or 0 if that is not known.
func unread(f *os.File) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	return n
}

// readNow reads what is in a pipe without waiting for more. It returns 0 if the pipe is empty, has no writer any
// more, or cannot be read.
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
