// Package simnet simulates a network that a test controls: the test can cut connections, hold back data, and delay
// it. In a bubble of testing/synctest it takes no real time, and clients and servers run there unchanged. It is for
// tests only. Tests of all modules share it.
package simnet

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// A Direction is one of the two directions of a connection.
type Direction int

const (
	ToServer Direction = iota
	ToClient
)

// A Link connects one client with its server. It carries all of their connections.
type Link struct {
	// Handshake is the number of packets, by direction, at the beginning of each connection that are neither delayed nor
	// held. A client may wait for them while it holds a lock. If another goroutine of the bubble then waited for that
	// lock, the time of the bubble would not advance. Set Handshake before the first Dial.
	Handshake [2]int

	dial func() (net.Conn, error)
	tap  func() (sent, received func([]byte))

	mu    sync.Mutex
	cut   bool
	open  map[*conn]bool
	held  [2]chan struct{} // closed on release; nil if nothing is held
	delay [2]time.Duration
}

// New returns a link to the server to which dial connects. tap, unless it is nil, is called for each connection. sent
// is then called with the data that the client sends when the client sends it, and received with the data that the
// client receives just before it does. Either may be nil.
func New(dial func() (net.Conn, error), tap func() (sent, received func([]byte))) *Link {
	return &Link{dial: dial, tap: tap, open: make(map[*conn]bool)}
}

type conn struct {
	link *Link
	ends [2]net.Conn // the link's ends to the client and to the server, by the direction that the link reads from them
	done chan struct{}
	once sync.Once
}

// Dial connects a client. The error is ECONNREFUSED after Cut. Dial ignores its arguments, which make it a dialer.
func (l *Link) Dial(_, _ string) (net.Conn, error) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		return nil, syscall.ECONNREFUSED
	}
	server, err := l.dial()
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	c := &conn{link: l, ends: [2]net.Conn{near, server}, done: make(chan struct{})}
	l.mu.Lock()
	l.open[c] = true
	l.mu.Unlock()
	var taps [2]func([]byte)
	if l.tap != nil {
		taps[ToServer], taps[ToClient] = l.tap()
	}
	for _, d := range []Direction{ToServer, ToClient} {
		f := &flow{conn: c, direction: d, more: make(chan struct{}, 1)}
		if d == ToServer {
			go f.take(taps[d])
			go f.give(nil)
		} else {
			go f.take(nil)
			go f.give(taps[d])
		}
	}
	return client, nil
}

func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		c.ends[ToServer].Close()
		c.ends[ToClient].Close()
		c.link.mu.Lock()
		defer c.link.mu.Unlock()
		delete(c.link.open, c)
	})
}

// A flow is one direction of a connection. It queues data without a limit, so that a client's write never waits: the
// client may hold a lock, and the time of a bubble would not advance while another goroutine waits for the lock.
type flow struct {
	conn      *conn
	direction Direction
	more      chan struct{}

	mu    sync.Mutex
	queue []packet
}

type packet struct {
	at   time.Time // the earliest time at which the packet arrives, unless it belongs to Link.Handshake
	data []byte    // nil at the end of the stream
}

func (f *flow) take(tap func([]byte)) {
	for buf := make([]byte, 64<<10); ; {
		n, err := f.conn.ends[f.direction].Read(buf)
		if n > 0 {
			data := append([]byte(nil), buf[:n]...)
			if tap != nil {
				tap(data)
			}
			f.put(data)
		}
		if err != nil {
			f.put(nil)
			return
		}
	}
}

func (f *flow) put(data []byte) {
	l := f.conn.link
	l.mu.Lock()
	at := time.Now().Add(l.delay[f.direction])
	l.mu.Unlock()
	f.mu.Lock()
	f.queue = append(f.queue, packet{at, data})
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

func (f *flow) give(tap func([]byte)) {
	defer f.conn.close()
	for free := f.conn.link.Handshake[f.direction]; ; {
		select {
		case <-f.more:
		case <-f.conn.done:
			return
		}
		f.mu.Lock()
		all := f.queue
		f.queue = nil
		f.mu.Unlock()
		for _, p := range all {
			if free--; free < 0 && !f.arrives(p.at) || p.data == nil {
				return
			}
			if tap != nil {
				tap(p.data)
			}
			if _, err := f.conn.ends[1-f.direction].Write(p.data); err != nil {
				return
			}
		}
	}
}

// arrives waits until the time at has come and the direction is not held. It returns false if the connection is closed
// before.
func (f *flow) arrives(at time.Time) bool {
	if d := time.Until(at); d > 0 {
		select {
		case <-time.After(d):
		case <-f.conn.done:
			return false
		}
	}
	for {
		f.conn.link.mu.Lock()
		held := f.conn.link.held[f.direction]
		f.conn.link.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-f.conn.done:
			return false
		}
	}
}

// Cut closes the connections, drops the data in transit, and makes Dial fail until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	l.cut = true
	var all []*conn
	for c := range l.open {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		c.close()
	}
}

// Mend makes Dial work again after Cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Hold holds back the data in these directions until Release. The connections stay open.
func (l *Link) Hold(directions ...Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range directions {
		if l.held[d] == nil {
			l.held[d] = make(chan struct{})
		}
	}
}

// Release lets held data arrive, and ends Hold for both directions.
func (l *Link) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d, held := range l.held {
		if held != nil {
			close(held)
			l.held[d] = nil
		}
	}
}

// Delay sets the time that data sent in a direction from now on takes to arrive.
func (l *Link) Delay(direction Direction, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay[direction] = d
}
