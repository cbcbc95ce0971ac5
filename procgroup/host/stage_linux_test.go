package host_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

const (
	// generous bounds waits. Only a test that fails waits as long.
	generous = 2 * time.Minute
	// patience is how long a server is seen to live after something that must not end it.
	patience = 500 * time.Millisecond
)

// programs returns a folder with copies of the test binary, so that host, server and sibling are
// different executables. Other users can run them.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		return "", err
	}
	removePrograms = func() { os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"host", "server", "sibling"} {
		if err := os.WriteFile(filepath.Join(dir, name), self, 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// removePrograms is called at the end of the suite.
var removePrograms = func() {}

// A stage has the processes of one scenario.
type stage struct {
	t    testing.TB
	dir  string // of the programs
	tmp  string // of the scenario
	mark string
	path string
	cmd  *exec.Cmd

	mu    sync.Mutex
	procs []*proc
	conns []net.Conn
	over  bool
	news  chan struct{} // closed, and replaced, when something has changed
}

// A proc is a process of the scenario.
type proc struct {
	s     *stage
	name  string
	pid   int
	conn  net.Conn
	lines []string
	gone  bool
}

func newStage(t testing.TB) *stage {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, dir: dir, tmp: tmp, mark: harness.Mark(), path: filepath.Join(tmp, "socket"), news: make(chan struct{})}
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.path, tmp} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.hear(conn) })
		}
	})
	t.Cleanup(func() {
		s.mu.Lock()
		for _, p := range s.procs {
			if !p.gone { // so it is the process that has this id; a stopped one does not obey
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
		// One that connects only now ends when its connection does.
		s.over = true
		for _, conn := range s.conns {
			conn.Close()
		}
		s.mu.Unlock()
		listener.Close()
		if s.cmd != nil {
			_ = s.cmd.Wait()
		}
		harness.None(t, s.mark)
		all.Wait()
		os.RemoveAll(tmp)
	})
	return s
}

// hear takes what a process says until it ends.
func (s *stage) hear(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	over := s.over
	s.mu.Unlock()
	if over {
		return
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		s.t.Error(err)
		return
	}
	p := &proc{s: s, conn: conn}
	_ = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p.pid = int(peer.Pid) // as this namespace has it
		}
	})
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		s.change(func() {
			if p.name == "" {
				p.name = lines.Text()
				s.procs = append(s.procs, p)
				return
			}
			p.lines = append(p.lines, lines.Text())
		})
	}
	s.change(func() { p.gone = true })
}

func (s *stage) change(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
	close(s.news)
	s.news = make(chan struct{})
}

// until waits until is returns true. It is called with s.mu held.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	deadline := time.After(generous)
	for {
		s.mu.Lock()
		done, news := is(), s.news
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-deadline:
			s.t.Fatalf("still waiting for %s; %s", what, s.report())
		}
	}
}

func (s *stage) report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, p := range s.procs {
		state := "running"
		if p.gone {
			state = "gone"
		}
		all = append(all, p.name+" "+state+": "+strings.Join(p.lines, "; "))
	}
	return strings.Join(all, "\n")
}

// run starts a command line, in which "@host" is the program host.
func (s *stage) run(args ...string) {
	s.t.Helper()
	args = slices.Clone(args)
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "@"); ok && len(name) > 1 {
			args[i] = filepath.Join(s.dir, name)
		}
	}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = append(s.cmd.Environ(), stageEnv+"="+s.path, s.mark)
	s.cmd.Dir = s.tmp
	var said lockedBuffer
	s.cmd.Stdout, s.cmd.Stderr = &said, &said
	s.cmd.WaitDelay = 30 * time.Second
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("output: %s\n%s", said.String(), s.report())
		}
	})
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// proc returns the process of a name, once it is there.
func (s *stage) proc(name string) (found *proc) {
	s.t.Helper()
	s.until("process "+name, func() bool {
		for _, p := range s.procs {
			if p.name == name {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// says waits until the process has said a line that begins with a text.
func (p *proc) says(prefix string) (line string) {
	p.s.t.Helper()
	p.s.until(p.name+" to say "+prefix, func() bool {
		for _, l := range p.lines {
			if strings.HasPrefix(l, prefix) {
				line = l
				return true
			}
		}
		if p.gone {
			line = "gone"
		}
		return p.gone
	})
	if line == "gone" {
		p.s.t.Errorf("%s ended and did not say %q; %s", p.name, prefix, p.s.report())
	}
	return line
}

func (p *proc) tell(command string) {
	p.s.t.Helper()
	if _, err := io.WriteString(p.conn, command+"\n"); err != nil {
		p.s.t.Error(err)
	}
}

// ends waits for the end of the process.
func (p *proc) ends() {
	p.s.t.Helper()
	p.s.until("the end of "+p.name, func() bool { return p.gone })
}

// exit has the process end by itself.
func (p *proc) exit() {
	p.s.t.Helper()
	p.tell("exit 0")
	p.ends()
}

// signal sends a signal. The process is alive: it is connected.
func (p *proc) signal(sig syscall.Signal) {
	p.s.t.Helper()
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.gone {
		p.s.t.Errorf("%s has ended already", p.name)
		return
	}
	if err := syscall.Kill(p.pid, sig); err != nil {
		p.s.t.Error(err)
	}
}

func (p *proc) kill() {
	p.s.t.Helper()
	p.signal(syscall.SIGKILL)
	p.ends()
}

// lives checks that the process has not ended a while later.
func (p *proc) lives() {
	p.s.t.Helper()
	time.Sleep(patience)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.gone {
		p.s.t.Errorf("%s has ended: %q", p.name, p.lines)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
