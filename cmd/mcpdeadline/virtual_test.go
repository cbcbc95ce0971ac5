package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// A virtualMachine is the system of a proxy in a bubble. Its servers are goroutines, and its network is made of pipes.
type virtualMachine struct {
	program func(*virtual)      // what a server does
	env     map[string]string   // of its servers
	deaf    bool                // servers are, to SIGTERM
	fails   func(run int) error // nil, or why a server cannot be started
	server  http.Handler        // answers at all URLs; nil means that nobody does
	network *pipeListener       // on which the proxy listens
	gone    func() bool         // see host.HungUp
	most    int                 // bytes of a message; 0 means jsonrpc.MaxMessage
	slow    bool                // a server reads and answers before the proxy, which has written to it, does anything else
	mu      sync.Mutex
	runs    []*virtual
	closers []func()
}

func (vm *virtualMachine) system() system {
	return system{
		most:  cmp.Or(vm.most, jsonrpc.MaxMessage),
		start: vm.start,
		listen: func(string, string) (net.Listener, error) {
			return vm.network, nil
		},
		transport: vm.transport,
		hungUp:    func(io.Reader) func() bool { return vm.gone },
		lookPath:  func(file string) (string, error) { return file, nil },
	}
}

// transport returns a way to the server of the machine.
func (vm *virtualMachine) transport() http.RoundTripper {
	l := newPipeListener()
	if vm.server == nil {
		_ = l.Close()
	}
	server := &http.Server{Handler: vm.server}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial, DialTLSContext: l.dial, MaxIdleConnsPerHost: 64}
	vm.atEnd(transport.CloseIdleConnections, func() { _ = server.Close() })
	return transport
}

func (vm *virtualMachine) atEnd(fn ...func()) {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	vm.closers = append(vm.closers, fn...)
}

func (vm *virtualMachine) close() {
	vm.mu.Lock()
	closers := vm.closers
	vm.mu.Unlock()
	for _, c := range closers {
		c()
	}
}

// up returns how many servers run.
func (vm *virtualMachine) up() (n int) {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	for _, p := range vm.runs {
		if !p.isDead() {
			n++
		}
	}
	return n
}

// A virtual is a process of a machine, a life in a bubble.
type virtual struct {
	vm     *virtualMachine
	run    int // from 1
	in     *pipe
	out    *pipe
	err    *pipe
	dead   chan struct{} // closed at its end
	pumped chan struct{} // closed when all of its output has been read
	turn   chan struct{} // has a value while a script writes
	begun  time.Time

	mu     sync.Mutex
	end    error
	ended  time.Time
	killed bool // by the proxy
	termed time.Time
	tail   strings.Builder
	seen   []string // methods, of a script
	spent  time.Duration
	busy   map[*time.Time]bool // since when something in it computes
	heard  []context.Context   // of those that attend
}

// An exitCode is the error of a process that ended by itself.
type exitCode int

func (s exitCode) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
func (s exitCode) ExitCode() int { return int(s) }

func (vm *virtualMachine) start(ctx context.Context, l server.Launch) (server.Child, error) {
	vm.mu.Lock()
	run := len(vm.runs) + 1
	if vm.fails != nil {
		if err := vm.fails(run); err != nil {
			vm.mu.Unlock()
			return nil, err
		}
	}
	p := &virtual{
		vm: vm, run: run, in: newPipe(), out: newPipe(), err: newPipe(), begun: time.Now(),
		dead: make(chan struct{}), pumped: make(chan struct{}), turn: make(chan struct{}, 1), busy: make(map[*time.Time]bool),
	}
	vm.runs = append(vm.runs, p)
	vm.mu.Unlock()
	var pumps sync.WaitGroup
	pumps.Go(func() {
		_, _ = io.Copy(l.Stdout, onlyReader{p.out})
		l.Closed()
	})
	pumps.Go(func() {
		_, _ = io.Copy(io.MultiWriter(&p.tail, l.Stderr), onlyReader{p.err})
	})
	go func() {
		pumps.Wait()
		close(p.pumped)
	}()
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.killed = !p.isDead()
		p.mu.Unlock()
		p.die(context.Cause(ctx))
	})
	go func() { <-p.dead; stop() }()
	go vm.program(p)
	return p, nil
}

type onlyReader struct{ io.Reader }

func (p *virtual) isDead() bool { return over(p.dead) }

// die ends the process.
func (p *virtual) die(why error) {
	p.mu.Lock()
	if p.isDead() {
		p.mu.Unlock()
		return
	}
	p.end, p.ended = why, time.Now()
	close(p.dead)
	p.mu.Unlock()
	p.in.hangUp()
	p.out.Close()
	p.err.Close()
}

// Of a child.

func (p *virtual) Stdin() (io.WriteCloser, func([]byte) int) {
	return p.in, func(b []byte) int {
		n := p.in.writeNow(b)
		for i := 0; i < 200 && p.vm.slow; i++ { // no time passes: what is due at other instants stays so
			runtime.Gosched()
		}
		return n
	}
}

func (p *virtual) Terminate() {
	p.mu.Lock()
	p.termed = time.Now()
	p.mu.Unlock()
	if !p.vm.deaf {
		p.die(errors.New("signal: terminated"))
	}
}

func (p *virtual) Wait() (string, error) {
	<-p.dead
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-p.pumped:
	case <-limit.C: // the host does not read
		return "", p.end
	}
	tail := p.tail.String()
	return tail[max(len(tail)-server.TailKept, 0):], p.end
}

func (p *virtual) Attend(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, ctx)
}

// Beat says that the work goes on.
func (p *virtual) Beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ctx := range p.heard {
		heartbeat.Beat(ctx)
	}
}

func (p *virtual) Observe(ctx context.Context, a procgroup.Activity) (server.Observer, error) {
	if p.isDead() {
		return nil, os.ErrProcessDone
	}
	o := &virtualObserver{p: p, over: make(chan struct{})}
	if a.CPU {
		go func() {
			before := p.cpu()
			for pause(ctx, 500*time.Millisecond) {
				select {
				case <-o.over:
					return
				default:
				}
				if now := p.cpu(); now > before {
					before = now
					heartbeat.Beat(ctx)
				}
			}
		}()
	}
	return o, nil
}

type virtualObserver struct {
	p    *virtual
	once sync.Once
	over chan struct{}
}

func (o *virtualObserver) Stop() { o.once.Do(func() { close(o.over) }) }

func (o *virtualObserver) Tree() (list procgroup.ProcessList) {
	if !o.p.isDead() {
		list.Processes = []procgroup.ProcessInfo{{Pid: o.p.Pid(), State: "sleeping", Args: []string{"evil"}, CPU: o.p.cpu()}}
	}
	return list
}

func (p *virtual) cpu() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.spent
	for since := range p.busy {
		all += time.Since(*since)
	}
	return all
}

// Of a life.

func (p *virtual) Env(key string) string { return p.vm.env[key] }
func (p *virtual) In() io.Reader         { return p.in }
func (p *virtual) Out() io.Writer        { return p.out }
func (p *virtual) Err() io.Writer        { return p.err }
func (p *virtual) Pid() int              { return 1<<23 + p.run }
func (p *virtual) CloseOut()             { p.out.Close() }
func (p *virtual) Dead() <-chan struct{} { return p.dead }
func (p *virtual) Hang()                 { <-p.dead; runtime.Goexit() }
func (p *virtual) Spawn()                {}

func (p *virtual) Exit(code int) {
	if code == 0 {
		p.die(nil)
	} else {
		p.die(exitCode(code))
	}
	runtime.Goexit()
}

func (p *virtual) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.dead:
		runtime.Goexit()
	}
}

func (p *virtual) Work(d time.Duration) {
	since := time.Now()
	p.mu.Lock()
	p.busy[&since] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.busy, &since)
		p.spent += time.Since(since)
		p.mu.Unlock()
	}()
	p.Sleep(d)
}

// A pipe holds as much as one of the kernel.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	buf    []byte
	eof    bool // closed by the writer
	broken bool // closed by the reader
	paused bool // reads wait
}

const pipeSize = 64 << 10

func newPipe() *pipe {
	p := new(pipe)
	p.change.L = &p.mu
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (len(p.buf) == 0 && !p.eof || p.paused) && !p.broken {
		p.change.Wait()
	}
	if p.broken || len(p.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buf)
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
	p.change.Broadcast()
	return n, nil
}

func (p *pipe) Write(b []byte) (n int, _ error) {
	for len(b) > 0 {
		p.mu.Lock()
		for len(p.buf) >= pipeSize && !p.broken && !p.eof {
			p.change.Wait()
		}
		if p.broken || p.eof {
			p.mu.Unlock()
			return n, io.ErrClosedPipe
		}
		k := min(len(b), pipeSize-len(p.buf))
		p.buf = append(p.buf, b[:k]...)
		b, n = b[k:], n+k
		p.change.Broadcast()
		p.mu.Unlock()
	}
	return n, nil
}

func (p *pipe) writeNow(b []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken || p.eof {
		return 0
	}
	k := min(len(b), pipeSize-len(p.buf))
	p.buf = append(p.buf, b[:k]...)
	p.change.Broadcast()
	return k
}

// Close is called by the writer.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eof = true
	p.change.Broadcast()
	return nil
}

// hangUp is called by the reader.
func (p *pipe) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.change.Broadcast()
}

// pause has reads wait, or lets them go on.
func (p *pipe) pause(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = is
	p.change.Broadcast()
}

// A pipeListener is a network of one server, within a bubble.
type pipeListener struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), over: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// A localConn comes from this machine.
type localConn struct{ net.Conn }

func (localConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- localConn{there}:
		return here, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}
