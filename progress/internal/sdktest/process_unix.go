//go:build unix

package sdktest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stuck is how long a process may run before the test kills it. A test takes that long only on failure.
const stuck = 2 * time.Minute

const hello = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"

const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// A process is a server over stdio in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.Closer
	lines *bufio.Reader
}

// start starts a server with two pipes as its stdin and stdout, and performs the handshake.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	in, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = in, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(stuck, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		kill.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, f := range []*os.File{in, out, toServer, fromServer} {
			_ = f.Close()
		}
	})
	p := &process{t, cmd, toServer, fromServer, bufio.NewReader(fromServer)}
	p.write(hello)
	p.hear("serverInfo")
	p.write(ready)
	return p
}

// leave closes the test's own copies of the server's ends of the pipes, so that the pipes end with the server.
func (p *process) leave() {
	_, _ = p.cmd.Stdin.(*os.File).Close(), p.cmd.Stdout.(*os.File).Close()
}

func (p *process) write(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) read() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%.200q, %v", line, err)
	}
	return line
}

func (p *process) hear(want string) {
	p.t.Helper()
	if line := p.read(); !strings.Contains(line, want) {
		p.t.Fatalf("%.200q", line)
	}
}

// NonBlocking makes the standard streams of a server non-blocking from another process, and reads its output late (SPEC
// 6.32). The server must still read and write everything.
func NonBlocking(t *testing.T, server *exec.Cmd) {
	p := start(t, server)
	in, out := server.Stdin.(*os.File), server.Stdout.(*os.File)
	filled := 0
	for _, f := range []*os.File{in, out} {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			if err := syscall.SetNonblock(int(fd), true); err != nil {
				t.Error(err)
			}
			for piece := make([]byte, 1<<10); f == out && len(piece) > 0; {
				n, err := syscall.Write(int(fd), piece)
				if filled += max(n, 0); err != nil {
					piece = piece[:len(piece)/2]
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.write(`{"jsonrpc":"2.0","id":"first","method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":"second","method":"tools/list"}` + "\n")
	if _, err := io.CopyN(io.Discard, p.lines, int64(filled)); err != nil {
		t.Fatal(err)
	}
	one, two := p.read(), p.read() // in either order, because the server answers each on a goroutine of its own
	if both := one + two; !strings.Contains(both, `"first"`) || !strings.Contains(both, `"second"`) {
		t.Fatalf("%.200q, %.200q", one, two)
	}
	p.write(`{"jsonrpc":"2.0","id":"third","method":"ping"}` + "\n") // the server is waiting in a read
	p.hear(`"third"`)
	_ = p.in.Close()
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// AnswersAtShutdown calls the tool "long", which beats once and returns more than a pipe holds, and signals the server
// when running calls run and the others have arrived. It checks that each call is answered, and that the exit code is
// 0.
func AnswersAtShutdown(t *testing.T, server *exec.Cmd, running, calls int) {
	server.Stderr = os.Stderr
	p := start(t, server)
	p.leave()
	for id := range calls {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","arguments":{},"_meta":{"progressToken":%[1]d}}}`+"\n", id))
	}
	p.write(`{"jsonrpc":"2.0","id":"ping","method":"ping"}` + "\n") // when it is answered, all calls have arrived
	for range running + 1 {
		if line := p.read(); !strings.Contains(line, "notifications/progress") && !strings.Contains(line, `"ping"`) {
			t.Fatalf("%.200q", line)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range calls {
		p.hear(`"text":"` + shutdownText)
	}
	if rest, err := io.ReadAll(p.lines); len(rest) > 0 || err != nil {
		t.Errorf("%.200q, %v", rest, err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// Crash simulates the death of a client (SPEC 3.11), and checks that its tools are stopped, and that the server ends.
// The server prints on stderr which tools start, and the exit codes with which they finish.
func Crash(t *testing.T, server *exec.Cmd) {
	told, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, server)
	p.leave()
	p.write(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent","arguments":{}}}` + "\n")
	var lines []string
	for r := bufio.NewScanner(told); r.Scan(); {
		if lines = append(lines, r.Text()); len(lines) == 1 {
			_, _ = p.in.Close(), p.out.Close() // a dead process holds neither end
		}
	}
	if d := cmp.Diff([]string{"started silent", "finished silent 130"}, lines); d != "" {
		t.Error(d)
	}
	// A SIGPIPE may end a server that writes to a stdout without a reader.
	if err := server.Wait(); err != nil && !strings.Contains(err.Error(), "broken pipe") {
		t.Error(err)
	}
}
