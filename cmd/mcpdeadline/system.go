package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A system is what the program asks the operating system for. That of a test is simulated.
type system struct {
	most      int                                          // bytes of a message
	start     func(context.Context, launch) (child, error) // starts a server
	listen    func(key, addr string) (net.Listener, error) // for -http and -inspect
	transport func() http.RoundTripper                     // to a server at a URL
	hungUp    func(stdin io.Reader) (gone func() bool)     // see hungUp
	lookPath  func(file string) (path string, err error)   // of the command of a server
}

// machine is the system that the program runs on.
var machine = system{jsonrpc.MaxMessage, startProcess, listen, newTransport, hungUp, exec.LookPath}

// A launch is a server that is to be started.
type launch struct {
	args           []string
	stdout, stderr io.Writer
	closed         func() // called when nothing more comes on stdout
}

// A child is a server that has been started. It is killed when the context that it was started with is done.
type child interface {
	// stdin returns the writer of its standard input, and a function that writes as much as there is room for,
	// or nil; see writeNow.
	stdin() (io.WriteCloser, func([]byte) int)
	// terminate asks it to end.
	terminate()
	// wait waits for its end, and that of its output. It returns the end of its stderr, and an error unless it ended
	// well.
	wait() (tail string, err error)
	observable
}

// An observable is processes whose work can be seen.
type observable interface {
	// observe makes their work a sign of life of the executions of ctx, until stop.
	observe(context.Context, procgroup.Activity) (observer, error)
}

// An observer looks at processes; see [procgroup.Observer].
type observer interface {
	Tree() procgroup.ProcessList
	Stop()
}

// A process is a child of this program.
type process struct {
	*procgroup.Process
	cmd *exec.Cmd
	in  io.WriteCloser
}

// startProcess starts a server as a process. On Linux, it and everything that it has started die with the proxy, even
// if the proxy is killed with SIGKILL; see procgroup.Helper.
func startProcess(ctx context.Context, l launch) (child, error) {
	p := &process{cmd: exec.Command(l.args[0], l.args[1:]...)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.cmd.Stdout, p.cmd.Stderr = in, l.stdout, l.stderr
	contained := procgroup.Containment("") // the best available
	if runtime.GOOS == "linux" {
		contained = procgroup.HelperTree // a launcher may end while its server runs
	}
	p.Process, err = procgroup.Start(ctx, p.cmd,
		procgroup.WithContainment(contained), procgroup.WithOptions(timeout.WithName(filepath.Base(l.args[0]))),
		procgroup.WithOutput(func(chunk procgroup.Chunk) {
			if chunk.Last && !chunk.Stderr {
				l.closed()
			}
		}),
		procgroup.WithLimits(timeout.Config{}), procgroup.WithMaxOutput(tailKeptOfStderr))
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) stdin() (io.WriteCloser, func([]byte) int) { return p.in, jsonrpc.WriteNow(p.in) }

func (p *process) terminate() { _ = p.Signal(syscall.SIGTERM) }

func (p *process) wait() (string, error) {
	res, err := p.Wait()
	return res.Stderr.String(), err
}

func (p *process) observe(ctx context.Context, a procgroup.Activity) (observer, error) {
	o, err := procgroup.Observe(ctx, p.cmd.Process, a)
	if err != nil { // and not a nil *procgroup.Observer
		return nil, err
	}
	return o, nil
}

func newTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	return transport
}
