//go:build unix

package queues

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// "make queues" sets it.
var realServers = flag.Bool("queues.real", false, "run the tests that start PostgreSQL and Redis")

// A server is a PostgreSQL or Redis of one test, on loopback, with its files in a directory of its own.
type server struct {
	port    string
	command func() *exec.Cmd
	ready   func(context.Context) error
	cmd     *exec.Cmd
}

// start starts the server, the first time or again with the same files, and waits until it answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	var log bytes.Buffer
	s.cmd = s.command()
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the server to answer", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return s.ready(ctx) == nil
	})
}

// stop ends the server as an operator would, within a second or so.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT) // with which PostgreSQL does not wait for its clients
	_ = s.cmd.Wait()
}

// newServer skips the test unless real servers are wanted.
func newServer(t testing.TB) (s *server, dir string) {
	t.Helper()
	if !*realServers {
		t.Skip("starts a server; make queues runs it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dir, err = os.MkdirTemp("", "queues"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &server{port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}, dir
}

func startRedis(t testing.TB) *server {
	t.Helper()
	s, dir := newServer(t)
	s.command = func() *exec.Cmd {
		return exec.Command("redis-server", "--bind", "127.0.0.1", "--port", s.port, "--dir", dir, "--appendonly", "yes")
	}
	s.ready = func(ctx context.Context) error {
		c := redis.NewClient(&redis.Options{Addr: s.addr()})
		defer c.Close()
		return c.Ping(ctx).Err()
	}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func startPostgres(t testing.TB) *server {
	t.Helper()
	s, dir := newServer(t)
	as, bin := asPostgres(t, dir), postgresBin(t)
	data := filepath.Join(dir, "data")
	initdb := as(exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-N"))
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.command = func() *exec.Cmd {
		return as(exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", s.port, "-h", "127.0.0.1", "-k", "",
			"-c", "shared_buffers=16MB", "-c", "max_connections=60"))
	}
	s.ready = func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, dsn(s.addr()))
		if err != nil {
			return err
		}
		return c.Close(ctx)
	}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func (s *server) addr() string { return "127.0.0.1:" + s.port }

func dsn(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

// postgresBin returns the directory of the server's programs, which Debian does not put into PATH.
func postgresBin(t testing.TB) string {
	t.Helper()
	if exe, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(exe)
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(all) == 0 {
		t.Fatal("no PostgreSQL is installed")
	}
	return filepath.Dir(all[len(all)-1])
}

// asPostgres gives the directory to the user postgres, and returns what makes a command run as it. PostgreSQL refuses to
// run as root; for any other user nothing is changed.
func asPostgres(t testing.TB, dir string) func(*exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return func(c *exec.Cmd) *exec.Cmd { return c }
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return func(c *exec.Cmd) *exec.Cmd {
		c.Dir = dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return c
	}
}

// A proxy passes connections on to a server, and can stop doing so for a while.
type proxy struct {
	net.Listener
	mu sync.RWMutex // held for writing while nothing passes
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			wg.Go(func() { p.pass(in, out) })
			wg.Go(func() { p.pass(out, in) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return p
}

func (p *proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.RLock()
		_, werr := to.Write(buf[:n])
		p.mu.RUnlock()
		if err != nil || werr != nil {
			return
		}
	}
}
