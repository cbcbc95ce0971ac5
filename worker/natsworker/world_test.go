package natsworker_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

const (
	streamName   = "JOBS"
	consumerName = "workers"
)

// A bench is a server with a work queue and a consumer, and the way to it. In a bubble of synctest its time is that
// of the bubble: it is the real server, and only the network is simulated.
type bench struct {
	testing.TB
	dir    string
	server atomic.Pointer[server.Server] // nil while there is none
	direct *simnet.Link                  // the test's own
	nc     *nats.Conn
	js     jetstream.JetStream
	sent   int
}

// inBubble runs a test with a bench in simulated time. There is one at a time, see timers.
func inBubble(t *testing.T, change func(*jetstream.ConsumerConfig), test func(*bench)) {
	t.Helper()
	timers.p = sync.Pool{}
	defer func() { timers.p = sync.Pool{} }()
	synctest.Test(t, func(t *testing.T) { test(newBench(t, change)) })
}

// timers is where nats.go keeps the timers that it uses again. Those of one bubble may not get into another.
//
//go:linkname timers github.com/nats-io/nats%2ego.globalTimerPool
var timers struct{ p sync.Pool }

func newBench(t testing.TB, change func(*jetstream.ConsumerConfig)) *bench {
	t.Helper()
	b := &bench{TB: t, dir: t.TempDir()}
	port := -1
	if _, ok := t.(*testing.B); ok {
		port = 0
	}
	b.server.Store(startServer(t, b.dir, port))
	t.Cleanup(func() {
		if s := b.server.Load(); s != nil {
			stopServer(s)
		}
	})
	b.direct = b.link(nil)
	b.nc = b.connect(b.direct)
	var err error
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	makeQueue(t, b.js, change)
	return b
}

func makeQueue(t testing.TB, js jetstream.JetStream, change func(*jetstream.ConsumerConfig)) {
	t.Helper()
	if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: streamName, Subjects: []string{"jobs.*"}, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		t.Fatal(err)
	}
	c := jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy}
	if change != nil {
		change(&c)
	}
	if _, err := js.CreateConsumer(context.Background(), streamName, c); err != nil {
		t.Fatal(err)
	}
}

// startServer starts a server that listens on a port: any if port is 0, none if it is negative.
func startServer(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: cmp.Or(port, server.RANDOM_PORT), DontListen: port < 0, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// restart ends the server, and starts it again after the time.
func (b *bench) restart(after time.Duration) {
	b.Helper()
	stopServer(b.server.Swap(nil))
	time.Sleep(after)
	b.server.Store(startServer(b, b.dir, -1))
}

// kill ends the server as SIGKILL does, and starts it again after the time: what it has not written by now it never
// has. links are those of its other clients.
func (b *bench) kill(after time.Duration, links ...*simnet.Link) {
	b.Helper()
	synctest.Wait()
	left := filepath.Join(b.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(b.dir)); err != nil {
		b.Fatal(err)
	}
	killed := b.server.Swap(nil)
	for _, l := range append(links, b.direct) {
		l.Cut()
		l.Mend()
	}
	stopServer(killed)
	b.dir = left
	time.Sleep(after)
	b.server.Store(startServer(b, b.dir, -1))
}

// link returns a way to whichever server there is. What goes on it is told to w, if that is not nil.
func (b *bench) link(w *wire) *simnet.Link {
	var tap func() (sent, received func([]byte))
	if w != nil {
		tap = w.tap
	}
	l := simnet.New(func() (net.Conn, error) {
		if s := b.server.Load(); s != nil {
			return s.InProcessConn()
		}
		return nil, syscall.ECONNREFUSED
	}, tap)
	l.Handshake = [2]int{simnet.ToServer: 1, simnet.ToClient: 2} // INFO, CONNECT and PING, PONG
	return l
}

// Dial goes by TCP, for benchmarks.
func (b *bench) Dial(_, _ string) (net.Conn, error) {
	return net.Dial("tcp", b.server.Load().Addr().String())
}

// connect makes a connection, which is closed at the end, with the server that it then has.
func (b *bench) connect(way nats.CustomDialer, opts ...nats.Option) *nats.Conn {
	b.Helper()
	nc, err := nats.Connect("nats://127.0.0.1", append([]nats.Option{nats.SetCustomDialer(way), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, opts...)...) // without the last, nats.go prints
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}

// consumer returns a handle on a connection of its own.
func (b *bench) consumer(way nats.CustomDialer, opts ...nats.Option) (jetstream.Consumer, *nats.Conn) {
	b.Helper()
	nc := b.connect(way, opts...)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	c, err := js.Consumer(context.Background(), streamName, consumerName)
	if err != nil {
		b.Fatal(err)
	}
	return c, nc
}

func (b *bench) publish(n int) {
	b.Helper()
	for range n {
		b.sent++
		if _, err := b.js.Publish(context.Background(), fmt.Sprintf("jobs.%d", b.sent), []byte{byte(b.sent)}); err != nil {
			b.Fatal(err)
		}
	}
}

// state returns what is in the queue.
func (b *bench) state() (left uint64, pending int) {
	b.Helper()
	s, err := b.js.Stream(context.Background(), streamName)
	if err != nil {
		b.Fatal(err)
	}
	c, err := b.js.Consumer(context.Background(), streamName, consumerName)
	if err != nil {
		b.Fatal(err)
	}
	return s.CachedInfo().State.Msgs, c.CachedInfo().NumAckPending
}

// empty waits until the queue is.
func (b *bench) empty() {
	b.Helper()
	b.eventually("the queue to be empty", func() bool { left, pending := b.state(); return left == 0 && pending == 0 })
}

// eventually waits for the server or for nats.go, whose times are theirs.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	pause := 50 * time.Millisecond
	for begun := time.Now(); !ok(); time.Sleep(pause) {
		pause = min(2*pause, 5*time.Second)
		if time.Since(begun) > 10*time.Minute {
			b.Fatalf("waited for %s, in vain", what)
		}
	}
}

// An advisory is what the server tells everybody about a delivery.
type advisory struct {
	Sequence   uint64 `json:"stream_seq"`
	Deliveries uint64 `json:"deliveries"`
	Reason     string `json:"reason"`
}

// advisories returns what has come so far.
func (b *bench) advisories() (get func(kind string) []advisory) {
	b.Helper()
	var mu sync.Mutex
	got := map[string][]advisory{}
	for _, kind := range []string{"MSG_NAKED", "MSG_TERMINATED", "MAX_DELIVERIES"} {
		if _, err := b.nc.Subscribe(fmt.Sprintf("$JS.EVENT.ADVISORY.CONSUMER.%s.%s.%s", kind, streamName, consumerName), func(m *nats.Msg) {
			var a advisory
			if err := json.Unmarshal(m.Data, &a); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[kind] = append(got[kind], a)
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.nc.FlushTimeout(time.Minute); err != nil {
		b.Fatal(err)
	}
	return func(kind string) []advisory {
		mu.Lock()
		defer mu.Unlock()
		return append([]advisory(nil), got[kind]...)
	}
}

// A wire has what a client and its server have said to each other about deliveries.
type wire struct {
	mu    sync.Mutex
	asked []time.Time      // the requests for messages
	said  []saying         // by the client
	await map[string][]int // of said, by the subject of the answer
}

// A saying is an acknowledgement on its way to the server.
type saying struct {
	message, delivery uint64
	at                time.Time
	what              string
	answered          time.Time // zero if it never was, or is not to be
}

func (w *wire) tap() (sent, received func([]byte)) {
	return (&parser{on: w.sent}).take, (&parser{on: w.received}).take
}

func (w *wire) sent(words []string, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	subject := words[1]
	switch {
	case strings.HasPrefix(subject, "$JS.API.CONSUMER.MSG.NEXT."):
		w.asked = append(w.asked, time.Now())
	case strings.HasPrefix(subject, "$JS.ACK."):
		m, d := ofReply(subject)
		w.said = append(w.said, saying{message: m, delivery: d, at: time.Now(), what: body})
		if len(words) == 4 {
			if w.await == nil {
				w.await = make(map[string][]int)
			}
			w.await[words[2]] = append(w.await[words[2]], len(w.said)-1)
		}
	}
}

func (w *wire) received(words []string, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.await[words[1]] {
		w.said[i].answered = time.Now()
	}
}

// ofReply returns which delivery of which message an acknowledgement is about.
func ofReply(subject string) (message, delivery uint64) {
	tokens := strings.Split(subject, ".")
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(tokens[i], 10, 64)
		if err != nil {
			panic(subject)
		}
		return n
	}
	return number(5), number(4)
}

// A parser finds messages in one direction of a connection.
type parser struct {
	on   func(words []string, body string)
	rest []byte
}

func (p *parser) take(b []byte) {
	p.rest = append(p.rest, b...)
	for {
		line, after, found := bytes.Cut(p.rest, []byte("\r\n"))
		if !found {
			return
		}
		words := strings.Fields(string(line))
		if len(words) > 0 && strings.Contains(" PUB HPUB MSG HMSG ", " "+strings.ToUpper(words[0])+" ") {
			n, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				panic(err)
			}
			if len(after) < n+2 {
				return
			}
			p.on(words, string(after[:n]))
			after = after[n+2:]
		}
		p.rest = append([]byte(nil), after...)
	}
}

// lost reports whether a function was stopped since its lease was lost.
func lost(ctx context.Context) bool { return errors.Is(context.Cause(ctx), lease.ErrLost) }

var noLimits = natsworker.Options{Limits: new(timeout.Config)}

func limited(c timeout.Config) natsworker.Options { return natsworker.Options{Limits: &c} }

// handler returns the handler of a consumer that is as it has to be.
func handler(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts natsworker.Options) jetstream.MessageHandler {
	h, err := natsworker.Handler(c, fn, opts)
	if err != nil {
		panic(err)
	}
	return h
}

func ackWait(d time.Duration) func(*jetstream.ConsumerConfig) {
	return func(c *jetstream.ConsumerConfig) { c.AckWait = d }
}
