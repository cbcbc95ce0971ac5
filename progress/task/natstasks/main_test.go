package natstasks_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/internal/waiting"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

// modeEnv makes the test binary another process; its value is the name of one in children.
const modeEnv = "TASKJETSTREAM_TEST_MODE"

var children = map[string]func() error{}

// slack is what is allowed on top of what is promised, on a loaded machine with the race
// detector.
const slack = 20 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		child, ok := children[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such mode:", mode)
			os.Exit(2)
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	waiting.Parallel(8)
	os.Exit(leftovers.Main(m))
}

// startServer starts a server with JetStream, on any port if it is -1.
func startServer(t testing.TB, port int, dir string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stopServer(s) })
	if !s.ReadyForConnections(slack) {
		t.Fatal("the server is not ready")
	}
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func port(s *server.Server) int { return s.Addr().(*net.TCPAddr).Port }

func dial(url string) (jetstream.JetStream, error) {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.Timeout(slack),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // outages are meant
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

func connect(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	js, err := dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(js.Conn().Close)
	return js
}

// open opens a store on a connection of its own.
func open(t testing.TB, url string, opts ...natstasks.Option) *natstasks.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*slack)
	defer cancel()
	s, err := natstasks.Open(ctx, connect(t, url), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // the server may be gone
	return s
}

func eventually(t testing.TB, within time.Duration, ok func() bool, what func() string) {
	t.Helper()
	pause := 5 * time.Millisecond // and longer each time: most ask the server, which is in this process
	for begun := time.Now(); !ok(); time.Sleep(pause) {
		pause = min(2*pause, 160*time.Millisecond)
		if time.Since(begun) > within {
			t.Fatal(what())
		}
	}
}
