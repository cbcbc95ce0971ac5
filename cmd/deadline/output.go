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
	// lastWords is how long, after the end of the command, output of processes that it has left running is read.
	lastWords = 300 * time.Millisecond
	// settling is how long abandon waits for a write to return after its file was closed.
	settling = 100 * time.Millisecond
	// pieceSize is the largest size of a write. A pipe accepts that much as a whole or not at all, so the number of
	// written bytes is exact.
	pieceSize = 4 << 10
)

// An output forwards the output of the command to the streams of deadline.
type output struct {
	forCommand []*os.File // the standard streams for the command
	pipes      []*pipe
	once       sync.Once
	done       chan struct{} // closed when no more output is forwarded
}

// A pipe connects a stream that the command writes to with the stream of deadline that it stands for.
type pipe struct {
	r, w   *os.File
	file   *stdio.File                      // the stream of deadline
	report func(format string, args ...any) // writes a message about an error

	read, written atomic.Int64 // numbers of bytes read from r and written to file
	refused       atomic.Bool  // a write to file has failed, so that nothing more is written; set by pass
	abandoned     atomic.Bool  // set by abandon: no write begins any more

	mu      sync.Mutex      // guards the fields below
	ctx     context.Context // the execution for which output is a heartbeat
	over    chan struct{}   // closed when the current write has ended; nil if there is none
	release func()          // ends the hold of the current write
}

// newOutput creates a pipe for each of stdout and stderr in streams that is not nil. If both are the same file, as with
// 2>&1, they share one pipe, so that the order of their output is kept.
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

// duplicate returns a copy of a standard stream with a descriptor above 2. If a write to descriptor 1 or 2 fails,
// package os raises SIGPIPE even if blockSIGPIPE has blocked it.
func duplicate(fd int) (*os.File, error) {
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(other), "stream"), nil
}

// same reports whether two files are the same file. It returns false on an error.
func same(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// closeForCommand closes deadline's copies of the ends that the command writes to, so that a pipe ends with the
// command.
func (o *output) closeForCommand() {
	for _, p := range o.pipes {
		p.w.Close()
	}
}

// start begins to forward output, in the first call. Output is a heartbeat of the execution of ctx until the next call.
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

// commandEnded ends the wait for further output after lastWords, because the command has ended.
func (o *output) commandEnded() {
	for _, p := range o.pipes {
		_ = p.r.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// abandon stops forwarding output. It waits up to settling for the current write to each stream. It returns the number
// of bytes of the command's output that were not written, without the output for a stream to which a write has failed
// before, usually because its reader has closed it.
func (o *output) abandon() (lost int64) {
	for _, p := range o.pipes {
		p.abandoned.Store(true)
		p.file.Close() // ends a write that waits, if the file is non-blocking
		p.settle()
		if !p.refused.Load() {
			lost += p.read.Load() - p.written.Load() + int64(unread(p.r))
		}
	}
	return lost
}

// copy forwards output until the pipe has no writer or a write fails. It then closes the pipe, so that the next write
// of the command fails as a write to the stream would.
func (p *pipe) copy() {
	blockSIGPIPE()
	defer func() {
		if !p.abandoned.Load() { // otherwise abandon counts the bytes in the pipe
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

// copyRest forwards the bytes that are in the pipe now, which include all output of the command itself. It does not
// forward later output of processes that the command has left running.
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

// pass writes b to the stream. It returns false if a write fails or the output was abandoned.
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

// beginWait suspends the idle limit until endWait, because a write may wait for the reader of the output, which the
// command does not control. The hold is a heartbeat at its beginning and its end.
func (p *pipe) beginWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = make(chan struct{})
	p.release = heartbeat.Hold(p.ctx)
}

// settle waits until a write that Close has ended has counted its bytes. For a write that still blocks, it waits only
// for settling.
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

// beatFor makes output a heartbeat of the execution of ctx. A hold of the current write moves to that execution.
func (p *pipe) beatFor(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	if p.over != nil {
		p.release()
		p.release = heartbeat.Hold(ctx)
	}
}

// unread returns the number of bytes in a pipe, or 0 if it is unknown.
func unread(f *os.File) (n int) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	}
	return n
}

// readNow reads from a pipe without waiting, and returns the number of bytes. It returns 0 if the pipe is empty, has no
// more writers, or cannot be read.
func readNow(f *os.File, p []byte) (n int) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), p)
			return true
		})
	}
	return max(n, 0)
}
