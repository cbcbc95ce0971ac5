package httptimeout_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A network in memory: there the time of servers and clients that know nothing of it is that of a bubble. Nothing is
// buffered on the way, so who writes waits for who reads.

// bubble runs f as a test of its own in a bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Hour) }) // in the end, for handlers that nobody waits for
			f(t)
		})
	})
}

type listener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Addr() net.Addr { return l.addr }
func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

var (
	listeners sync.Map // by the text of the address
	ports     atomic.Int64
)

func nextAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports.Add(1))} }

// start starts s there, and has its client find it.
func start(s *httptest.Server) {
	s.Listener.Close()
	l := &listener{addr: nextAddr(), conns: make(chan net.Conn), done: make(chan struct{})}
	listeners.Store(l.addr.String(), l)
	s.Listener = l
	if s.EnableHTTP2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	s.Client().Transport.(*http.Transport).DialContext = func(_ context.Context, _, addr string) (net.Conn, error) { return dial(addr) }
}

// dial connects a client to the server at addr.
func dial(addr string) (net.Conn, error) {
	found, ok := listeners.Load(addr)
	if !ok {
		return net.Dial("tcp", addr)
	}
	l := found.(*listener)
	near, far := net.Pipe()
	client, server := &conn{Conn: near, local: nextAddr(), remote: l.addr}, &conn{Conn: far}
	server.local, server.remote, client.peer = l.addr, client.local, server
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// A conn is an end of a pipe that can be closed by half.
type conn struct {
	net.Conn
	local, remote net.Addr
	peer          *conn // of a client
	ended         atomic.Bool
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// CloseWrite ends what the server reads.
func (c *conn) CloseWrite() error {
	c.peer.ended.Store(true)
	return c.peer.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && c.ended.Load() {
		err = io.EOF
	}
	return n, err
}

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.ended.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// exchange sends a request by hand, of which more may be missing, and returns all that comes back.
func exchange(t *testing.T, addr, request string, closeWrite bool) string {
	t.Helper()
	conn, err := dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server may answer before it has read all
		io.WriteString(conn, request)
		if closeWrite {
			conn.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// get is what the client of s gets for a request.
func get(t *testing.T, s *httptest.Server) (*http.Response, string, error) {
	t.Helper()
	return getPath(t, s, "")
}

func getPath(t *testing.T, s *httptest.Server, path string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// took checks that it is d since begun, in the bubble.
func took(t *testing.T, begun time.Time, d time.Duration) {
	t.Helper()
	if got := time.Since(begun); got != d {
		t.Error(fmt.Sprint("after ", got, ", want ", d))
	}
}
