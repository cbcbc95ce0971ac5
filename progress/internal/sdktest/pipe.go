package sdktest

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// A Pipe is a pipe in memory without a bound. Unless it is stalled, a Write never blocks. A blocked Write of an SDK
// that holds a lock would keep the simulated time from advancing.
type Pipe struct {
	mu      sync.Mutex
	changed sync.Cond
	data    []byte
	closed  bool
	stalled bool
}

// NewPipe returns a pipe.
func NewPipe() *Pipe {
	p := new(Pipe)
	p.changed.L = &p.mu
	return p
}

// Stall makes all writes block until the pipe is closed.
func (p *Pipe) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
}

func (p *Pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	p.data = append(p.data, b...)
	p.changed.Broadcast()
	return len(b), nil
}

func (p *Pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.data) == 0 && !p.closed {
		p.changed.Wait()
	}
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data)
	p.data = p.data[n:]
	return n, nil
}

// Close closes the pipe for both sides. Data that were written before can still be read.
func (p *Pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.changed.Broadcast()
	return nil
}

// A conn is an end of a connection. Its writes do not block.
type conn struct {
	net.Conn
	out  *Pipe
	done chan struct{}
}

func newConn(c net.Conn) *conn {
	e := &conn{c, NewPipe(), make(chan struct{})}
	go func() {
		_, _ = io.Copy(struct{ io.Writer }{c}, e.out)
		_ = c.Close()
		close(e.done)
	}()
	return e
}

func (c *conn) Write(b []byte) (int, error) { return c.out.Write(b) }
func (c *conn) Close() error                { return c.out.Close() }

// A Net is an HTTP server, and a network in memory by which clients reach it. It is also the listener of the server.
type Net struct {
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}

	mu   sync.Mutex
	all  []net.Conn
	down bool
}

// NewNet returns a Net that serves h until End is called.
func NewNet(h http.Handler) *Net {
	n := &Net{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.server = &http.Server{Handler: h}
	go func() { _ = n.server.Serve(n) }()
	return n
}

// Accept waits for the next connection. With Addr and Close, it implements net.Listener.
func (n *Net) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return newConn(c), nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Addr returns the address of the listener.
func (n *Net) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// Close closes the listener, and leaves the connections open.
func (n *Net) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
	default:
		close(n.closed)
	}
	return nil
}

// Client returns a client whose requests all go to the server, for any host in their URLs.
func (n *Net) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		down := n.down
		n.mu.Unlock()
		if down {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		here, there := net.Pipe()
		select {
		case n.conns <- there:
		case <-n.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c := newConn(here)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all = append(n.all, here)
		return c, nil
	}}}
}

// Cut closes all connections at once.
func (n *Net) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.all {
		_ = c.Close()
	}
	n.all = nil
}

// Down sets whether new connections are refused. Down(true) also closes the open connections.
func (n *Net) Down(down bool) {
	n.mu.Lock()
	n.down = down
	n.mu.Unlock()
	if down {
		n.Cut()
	}
}

// End closes all connections and the server.
func (n *Net) End() {
	n.Cut()
	_ = n.server.Close()
}
