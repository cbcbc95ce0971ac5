package simnet

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// This file has the network without a Link: a write arrives at once, and nothing is buffered, so that a writer waits
// for the reader.

type listener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Addr() net.Addr { return l.addr }
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done); listeners.Delete(l.addr.String()) })
	return nil
}
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

var (
	listeners sync.Map // of *listener, by the text of the address
	ports     atomic.Int64
)

func nextAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports.Add(1))} }

// Start starts s, which must not have been started, at a new address, and makes the client of s connect to it.
func Start(s *httptest.Server) {
	s.Listener.Close()
	l := &listener{addr: nextAddr(), conns: make(chan net.Conn), done: make(chan struct{})}
	listeners.Store(l.addr.String(), l)
	s.Listener = l
	if s.EnableHTTP2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	s.Client().Transport.(*http.Transport).DialContext = func(_ context.Context, _, addr string) (net.Conn, error) {
		return Dial(addr)
	}
}

// Dial connects a client to the server at addr. The error is ECONNREFUSED if there is none. The connection has a
// method CloseWrite.
func Dial(addr string) (net.Conn, error) {
	found, ok := listeners.Load(addr)
	if !ok {
		return nil, syscall.ECONNREFUSED
	}
	l := found.(*listener)
	near, far := net.Pipe()
	client, server := &end{Conn: near, local: nextAddr(), remote: l.addr}, &end{Conn: far}
	server.local, server.remote, client.peer = l.addr, client.local, server
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, syscall.ECONNREFUSED
	}
}

// An end is one end of a connection. That of the client has a CloseWrite.
type end struct {
	net.Conn
	local, remote net.Addr
	peer          *end        // the server's end; nil in the server's end
	ended         atomic.Bool // the peer has called CloseWrite
}

func (c *end) LocalAddr() net.Addr  { return c.local }
func (c *end) RemoteAddr() net.Addr { return c.remote }

// CloseWrite makes the server's reads return io.EOF.
func (c *end) CloseWrite() error {
	c.peer.ended.Store(true)
	return c.peer.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *end) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && c.ended.Load() {
		err = io.EOF
	}
	return n, err
}

func (c *end) SetReadDeadline(t time.Time) error {
	if c.ended.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *end) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}
