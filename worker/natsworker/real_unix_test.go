//go:build unix

package natsworker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// What only real processes show: the simulation has no SIGKILL and no SIGSTOP of a worker, no sockets, and no server
// that is killed between two writes.

func init() {
	modes["server"] = func() { exit(serverChild()) }
	modes["worker"] = func() { exit(workerChild()) }
	modes["suspend"] = func() { exit(suspendChild()) }
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// A child is a process of this binary that says something when it is ready.
type child struct {
	*exec.Cmd
	stdin io.Closer
	lines *bufio.Reader
}

func startChild(t testing.TB, mode string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: harness.Command(mode, args...)}
	c.Stderr = os.Stderr
	var err error
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	c.Process.Kill()
	c.Wait()
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (c *child) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// serverChild is a server with its files in a directory and a port, any if it is 0, until its standard input ends.
func serverChild() error {
	port, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	s := startServer(failing{}, os.Args[1], port)
	fmt.Println(s.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
	stopServer(s)
	return nil
}

// failing is the testing.TB of a process that is no test.
type failing struct{ testing.TB }

func (failing) Helper()           {}
func (failing) Fatal(args ...any) { exit(errors.New(fmt.Sprint(args...))) }

// dial connects to a server that may be away just now.
func dial(url string) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	return nc, js, err
}

// workerChild works on messages until its standard input ends. Some of them hang.
func workerChild() error {
	nc, js, err := dial(os.Args[1])
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var c jetstream.Consumer
	var done jetstream.KeyValue
	for c == nil || done == nil {
		if ctx.Err() != nil {
			return nil
		}
		try, cancel := context.WithTimeout(ctx, time.Second)
		if c, err = js.Consumer(try, streamName, consumerName); err != nil {
			c = nil
		}
		if done, err = js.KeyValue(try, "done"); err != nil {
			done = nil
		}
		cancel()
	}
	return natsworker.Run(ctx, c, 4, func(ctx context.Context, m jetstream.Msg) error {
		if rand.IntN(20) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(100 * time.Millisecond)):
			heartbeat.Beat(ctx)
		}
		// The answer may be lost with the server.
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := done.Create(ctx, m.Headers().Get(jetstream.MsgIDHeader), nil)
		if errors.Is(err, jetstream.ErrKeyExists) {
			return nil
		}
		return err
	}, natsworker.Options{Conn: nc, Limits: &timeout.Config{Idle: time.Second}, Backoff: 50 * time.Millisecond, MaxBackoff: time.Second})
}

// SPEC 13.2: workers and the server are killed and stopped, again and again. Each message is done, and where it is
// completed as the package documentation says under Effects, once. The soak is longer.
func TestReal(t *testing.T) {
	t.Parallel()
	seed, messages, end := harness.FirstSeed(), 100, time.Now()
	if harness.Length() > 0 {
		seed, messages, end = uint64(time.Now().UnixNano()), 1000, end.Add(harness.Length())
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ctx, dir := context.Background(), t.TempDir()
	server := startChild(t, "server", dir, "0")
	port := server.line(t)
	url := "nats://127.0.0.1:" + port
	nc, js, err := dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	makeQueue(t, js, ackWait(time.Second))
	done, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "done", History: 64})
	if err != nil {
		t.Fatal(err)
	}
	start := func() *child { return startChild(t, "worker", url) }
	workers := []*child{start(), start(), start()}
	publish := func(id string) {
		harness.Eventually(t, "the server to take a message", func() bool {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := js.Publish(ctx, "jobs.x", nil, jetstream.WithMsgID(id))
			return err == nil
		})
	}
	all := 0
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		blows := []func(){
			func() { i := random.IntN(3); workers[i].kill(); workers[i] = start() },
			func() {
				w := workers[random.IntN(3)]
				w.signal(t, syscall.SIGSTOP)
				time.AfterFunc(time.Duration(random.Int64N(int64(2*time.Second))), func() { w.Process.Signal(syscall.SIGCONT) })
			},
			func() { server.kill(); server = startChild(t, "server", dir, port); server.line(t) },
		}
		random.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
		for _, blow := range blows {
			for range messages / len(blows) {
				publish(fmt.Sprint(all))
				all++
			}
			blow()
		}
	}
	harness.Eventually(t, "all messages to be done", func() bool {
		s, err := js.Stream(ctx, streamName)
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
	for id := range all {
		if history, err := done.History(ctx, fmt.Sprint(id)); err != nil || len(history) != 1 {
			t.Errorf("message %d: completed %d times, %v", id, len(history), err)
		}
	}
	for _, w := range workers {
		w.stdin.Close()
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// suspendChild says what became of its one message.
func suspendChild() error {
	nc, js, err := dial(os.Args[1])
	if err != nil {
		return err
	}
	defer nc.Close()
	c, err := js.Consumer(context.Background(), streamName, consumerName)
	if err != nil {
		return err
	}
	m, err := c.Next()
	if err != nil {
		return err
	}
	opts := noLimits
	if os.Args[2] == "requested" {
		opts.Conn = nc
	}
	handler(c, func(ctx context.Context, _ jetstream.Msg) error {
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("lost", lost(ctx))
		return errBroken
	}, opts)(m)
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}

// Guarantee 2: a process that was suspended for longer than AckWait finds its message lost, and says nothing about it.
func TestSuspendedProcess(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"published", "requested"} {
		server := startChild(t, "server", t.TempDir(), "0")
		url := "nats://127.0.0.1:" + server.line(t)
		nc, js, err := dial(url)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		makeQueue(t, js, ackWait(time.Second))
		b := &bench{TB: t, nc: nc, js: js}
		heard := b.advisories()
		b.publish(1)
		p := startChild(t, "suspend", url, way)
		if line := p.line(t); line != "begun" {
			t.Fatal(line)
		}
		p.signal(t, syscall.SIGSTOP)
		c, err := js.Consumer(t.Context(), streamName, consumerName)
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
		p.signal(t, syscall.SIGCONT)
		for _, want := range []string{"lost true", "ended"} {
			if line := p.line(t); line != want {
				t.Errorf("%q, want %q", line, want)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Error(err)
		}
		if got := heard("MSG_NAKED"); len(got) != 0 {
			t.Errorf("%s: said after it was lost: %v", way, got)
		}
	}
}
