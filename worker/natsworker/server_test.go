package natsworker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamName   = "JOBS"
	consumerName = "workers"
)

// A bench is a server with a work queue and a consumer, for one test.
type bench struct {
	testing.TB
	server *server.Server
	dir    string
	nc     *nats.Conn // straight to the server
	js     jetstream.JetStream
	sent   int
}

func newBench(t testing.TB, change func(*jetstream.ConsumerConfig)) *bench {
	t.Helper()
	b := &bench{TB: t, dir: t.TempDir()}
	b.server = startServer(t, -1, b.dir)
	b.nc = b.connect(b.server.ClientURL())
	js, err := jetstream.New(b.nc)
	if err != nil {
		t.Fatal(err)
	}
	b.js = js
	b.queue(change)
	return b
}

// queue makes the stream and the consumer.
func (b *bench) queue(change func(*jetstream.ConsumerConfig)) {
	b.Helper()
	if _, err := b.js.CreateStream(b.Context(), jetstream.StreamConfig{
		Name: streamName, Subjects: []string{"jobs.*"}, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		b.Fatal(err)
	}
	c := jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy}
	if change != nil {
		change(&c)
	}
	if _, err := b.js.CreateConsumer(b.Context(), streamName, c); err != nil {
		b.Fatal(err)
	}
}

func startServer(t testing.TB, port int, dir string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(slack) {
		t.Fatal("the server is not ready")
	}
	return s
}

// restart stops the server, and starts it again after the time.
func (b *bench) restart(after time.Duration) {
	b.Helper()
	port := b.server.Addr().(*net.TCPAddr).Port
	b.server.Shutdown()
	b.server.WaitForShutdown()
	time.Sleep(after)
	b.server = startServer(b, port, b.dir)
}

func (b *bench) connect(url string) *nats.Conn {
	b.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.Timeout(slack),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // without one, nats.go prints
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}

// consumer returns a handle on a connection of its own, straight or through a proxy.
func (b *bench) consumer(url string) (jetstream.Consumer, *nats.Conn) {
	b.Helper()
	nc := b.connect(url)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	c, err := js.Consumer(b.Context(), streamName, consumerName)
	if err != nil {
		b.Fatal(err)
	}
	return c, nc
}

func (b *bench) publish(n int) {
	b.Helper()
	for range n {
		b.sent++
		if _, err := b.js.Publish(b.Context(), fmt.Sprintf("jobs.%d", b.sent), []byte{byte(b.sent)}); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) state() (left uint64, pending int) {
	b.Helper()
	s, err := b.js.Stream(b.Context(), streamName)
	if err != nil {
		b.Fatal(err)
	}
	c, err := b.js.Consumer(b.Context(), streamName, consumerName)
	if err != nil {
		b.Fatal(err)
	}
	return s.CachedInfo().State.Msgs, c.CachedInfo().NumAckPending
}

// waiting returns how many pull requests are with the server.
func (b *bench) waiting() int {
	b.Helper()
	c, err := b.js.Consumer(b.Context(), streamName, consumerName)
	if err != nil {
		b.Fatal(err)
	}
	return c.CachedInfo().NumWaiting
}

// empty waits until the queue is.
func (b *bench) empty() {
	b.Helper()
	var left uint64
	var pending int
	eventually(b, 3*slack, func() bool { left, pending = b.state(); return left == 0 && pending == 0 },
		func() string { return fmt.Sprintf("%d messages left, %d unacknowledged", left, pending) })
}

func eventually(t testing.TB, within time.Duration, ok func() bool, what func() string) {
	t.Helper()
	pause := 5 * time.Millisecond // and longer each time: most ask the server, which is in this process
	for begun := time.Now(); !ok(); time.Sleep(pause) {
		pause = min(2*pause, 80*time.Millisecond)
		if time.Since(begun) > within {
			t.Fatal(what())
		}
	}
}

// An advisory is what the server tells everybody about a delivery.
type advisory struct {
	Kind       string `json:"-"`
	Sequence   uint64 `json:"stream_seq"`
	Deliveries uint64 `json:"deliveries"`
	Reason     string `json:"reason"`
}

// advisories returns what has come so far. A round trip goes before, so that what the server
// has sent is here.
func (b *bench) advisories() (get func(kind string) []advisory) {
	b.Helper()
	var mu sync.Mutex
	var got []advisory
	for _, kind := range []string{"MSG_NAKED", "MSG_TERMINATED", "MAX_DELIVERIES"} {
		if _, err := b.nc.Subscribe(fmt.Sprintf("$JS.EVENT.ADVISORY.CONSUMER.%s.%s.%s", kind, streamName, consumerName), func(m *nats.Msg) {
			a := advisory{Kind: kind}
			if err := json.Unmarshal(m.Data, &a); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, a)
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.nc.FlushTimeout(slack); err != nil {
		b.Fatal(err)
	}
	return func(kind string) (found []advisory) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range got {
			if a.Kind == kind {
				found = append(found, a)
			}
		}
		return found
	}
}

func delivery(m jetstream.Msg) uint64 {
	meta, err := m.Metadata()
	if err != nil {
		panic(err)
	}
	return meta.NumDelivered
}

// A proxy is a connection that can be lost.
type proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	lost bool
	held chan struct{} // closed on release; nil if nothing is held
	open map[net.Conn]bool
	wg   sync.WaitGroup
}

func newProxy(t testing.TB, s *server.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: s.Addr().String(), open: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.release()
		p.lose()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := (&net.Dialer{Timeout: slack}).DialContext(context.Background(), "tcp", p.server)
		if err != nil || !p.keep(client, upstream) {
			client.Close()
			if err == nil {
				upstream.Close()
			}
			continue
		}
		pipe := func(to io.Writer, from io.Reader) {
			io.Copy(to, from)
			p.drop(client, upstream)
		}
		p.wg.Go(func() { pipe(upstream, client) })
		p.wg.Go(func() { pipe(slowWriter{p, client}, upstream) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return false
	}
	for _, c := range conns {
		p.open[c] = true
	}
	return true
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// lose cuts the connection, and keeps new ones away until find.
func (p *proxy) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
	for c := range p.open {
		c.Close()
		delete(p.open, c)
	}
}

func (p *proxy) find() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = false
}

// hold keeps what the server sends until release. Messages to the server arrive.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

type slowWriter struct {
	p *proxy
	net.Conn
}

func (w slowWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	held := w.p.held
	w.p.mu.Unlock()
	if held != nil {
		<-held
	}
	return w.Conn.Write(b)
}
