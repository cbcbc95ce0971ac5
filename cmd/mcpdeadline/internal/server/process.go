package server

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// TailKept is the number of bytes from the end of the server's stderr that the error about its end contains.
const TailKept = 4 << 10

// A Launch describes a server to be started.
type Launch struct {
	Args           []string
	Stdout, Stderr io.Writer
	Closed         func() // called at the end of the server's stdout
	Notify         bool   // gives the server a socket for heartbeats; see procgroup.Notify
}

// A Child is a server that has been started. It is killed when the context that Start got is done.
type Child interface {
	// Stdin returns the writer of the server's standard input, and a function that writes as many bytes as it can
	// without waiting, or nil; see [jsonrpc.WriteNow].
	Stdin() (io.WriteCloser, func([]byte) int)
	// Terminate sends the server SIGTERM.
	Terminate()
	// Wait waits for the end of the server and of its output. It returns the end of its stderr, and an error unless the
	// exit status is 0.
	Wait() (tail string, err error)
	Observable
}

// A process is a child of this program.
type process struct {
	running *procgroup.Process
	cmd     *exec.Cmd
	in      io.WriteCloser
	notices *procgroup.Listener // the socket for heartbeats; nil if there is none
}

// StartProcess starts a server as a process. On Linux, the process and its descendants die with the proxy, even if the
// proxy is killed with SIGKILL; see procgroup.Helper.
func StartProcess(ctx context.Context, l Launch) (Child, error) {
	p := &process{cmd: exec.Command(l.Args[0], l.Args[1:]...)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.cmd.Stdout, p.cmd.Stderr = in, l.Stdout, l.Stderr
	contained := procgroup.Containment("") // the best available
	if runtime.GOOS == "linux" {
		contained = procgroup.HelperTree // also ends a server whose launcher has ended before it
	}
	if l.Notify {
		p.notices, _ = procgroup.Listen() // an error only means that there are no heartbeats
	}
	if p.notices != nil {
		end, _ := timeout.Inherited() // the deadline of the proxy, or zero
		p.cmd.Env = p.notices.Environ(p.cmd.Environ(), 0, end)
	}
	p.running, err = procgroup.Start(ctx, p.cmd,
		contained, procgroup.WithOptions(timeout.WithName(filepath.Base(l.Args[0]))),
		procgroup.Capture{Each: func(chunk procgroup.Chunk) {
			if chunk.Last && !chunk.Stderr {
				l.Closed()
			}
		}, Tail: TailKept})
	if err != nil {
		p.unlisten()
		return nil, err
	}
	return p, nil
}

func (p *process) Stdin() (io.WriteCloser, func([]byte) int) { return p.in, jsonrpc.WriteNow(p.in) }

func (p *process) Terminate() { _ = p.running.Signal(syscall.SIGTERM) }

func (p *process) Wait() (string, error) {
	res, err := p.running.Wait()
	p.unlisten()
	return res.Stderr.String(), err
}

func (p *process) unlisten() {
	if p.notices != nil {
		p.notices.Close()
	}
}

func (p *process) Attend(ctx context.Context) {
	if p.notices != nil {
		p.notices.Attend(ctx)
	}
}

func (p *process) Observe(ctx context.Context, a procgroup.Activity) (Observer, error) {
	o, err := procgroup.Observe(ctx, p.cmd.Process, a)
	if err != nil { // a nil *procgroup.Observer would not be a nil interface
		return nil, err
	}
	return o, nil
}
