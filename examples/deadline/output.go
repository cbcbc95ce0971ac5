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
	// pipeMost is the most that a pipe can hold unless the system was told otherwise.
	pipeMost = 1 << 20
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
	r, w    *os.File
	to      io.Writer
	report  func(format string, args ...any)
	writing atomic.Bool // waiting for whoever takes our output
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
		p := &pipe{r: r, w: w, to: streams[fd], report: rep.say}
		if st != nil {
			p.to = st.output(streams[fd])
		}
		o.forCommand[fd] = w
		o.pipes = append(o.pipes, p)
	}
	return o, nil
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

// start begins to pass on. ctx is that of the execution whose heartbeat the output is.
// Later calls do nothing: what follows a signal has no idle limit.
func (o *output) start(ctx context.Context) {
	o.once.Do(func() {
		var all sync.WaitGroup
		for _, p := range o.pipes {
			all.Go(func() { p.copy(ctx) })
		}
		go func() {
			all.Wait()
			close(o.done)
		}()
	})
}

// copy passes on until the pipe has no writer any more, or nobody takes the output. In
// that case the pipe is closed, so that the command is told as if it wrote there itself.
func (p *pipe) copy(ctx context.Context) {
	defer p.r.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := p.r.Read(buf)
		if n > 0 && !p.pass(ctx, buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.copyRest(ctx, buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// copyRest passes on what is in the pipe. What the command itself has written is all
// there; a bound is needed only against what it has left running.
func (p *pipe) copyRest(ctx context.Context, buf []byte) {
	_ = p.r.SetReadDeadline(time.Time{})
	for total := 0; total < pipeMost; {
		n := readNow(p.r, buf)
		if n == 0 || !p.pass(ctx, buf[:n]) {
			return
		}
		total += n
	}
}

// pass writes b. The hold is a heartbeat, and it keeps the idle limit off while nobody
// takes the output: the command is not to blame for that.
func (p *pipe) pass(ctx context.Context, b []byte) (ok bool) {
	release := heartbeat.Hold(ctx)
	defer release()
	p.writing.Store(true)
	defer p.writing.Store(false)
	_, err := p.to.Write(b)
	if err != nil && !errors.Is(err, unix.EPIPE) {
		p.report("write error: %s", reason(err))
	}
	return err == nil
}

// drain waits until all output has been passed on, once the command has ended. It
// reports false if ctx is done while somebody still has to take it, which is what the
// limit is for: a command that writes itself would be waiting too. If the command was
// stopped, nobody is waited for.
func (o *output) drain(ctx context.Context, stopped bool) bool {
	for _, p := range o.pipes {
		_ = p.r.SetReadDeadline(time.Now().Add(lastWords))
	}
	if stopped {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*lastWords)
		defer cancel()
	}
	select {
	case <-o.done:
		return true
	case <-ctx.Done():
		return stopped || !o.writing()
	}
}

// writing reports whether somebody has to take output.
func (o *output) writing() bool {
	for _, p := range o.pipes {
		if p.writing.Load() {
			return true
		}
	}
	return false
}
