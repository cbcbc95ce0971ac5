package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// busy has the server run a tree of processes, one that hangs and one that is deaf, without
// waiting for them.
func busy(t *testing.T, c *client) {
	t.Helper()
	go func() { _, _ = c.call(context.Background(), "hang", nil) }()
	go func() { _, _ = c.call(context.Background(), "deaf", map[string]any{"seconds": 600}) }()
	args := sh(t, tree)
	go func() { _, _ = c.call(context.Background(), "run_command", args) }()
	eventually(t, func() bool { return len(c.messages(t)) > 0 })
}

// Whatever ends the server, it ends soon, the deaf tool's grace included, with 0, and no
// process is left, which connect sees to.
func TestEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there")
	}
	for name, end := range map[string]func(c *client) error{
		"SIGTERM": func(c *client) error { return c.server.end(syscall.SIGTERM) },
		"SIGINT":  func(c *client) error { return c.server.end(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w way) {
				c := w.connect(t, nil, nil)
				busy(t, c)
				if err := end(c); err != nil {
					t.Error(err)
				}
				leftovers.None(t, c.server.mark)
			})
		})
	}
}

// Each call in progress has its answer when the server is asked to end, one that waits for its turn
// too.
func TestAnswersAtShutdown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there")
	}
	for _, tc := range []struct {
		signal syscall.Signal
		ways   []way
		rounds int
	}{
		{syscall.SIGTERM, ways, 2},
		{syscall.SIGINT, []way{ways[0], ways[3]}, 1}, // the signal is the same to all that comes after it
		{syscall.SIGHUP, []way{ways[0], ways[3]}, 1},
	} {
		t.Run(tc.signal.String(), func(t *testing.T) {
			eachOf(t, tc.ways, func(t *testing.T, w way) {
				for range tc.rounds {
					c := w.connect(t, nil, nil, "-calls", "2")
					dir, answers := t.TempDir(), make(chan string, 3)
					call := func(i int) {
						p := &mcp.CallToolParams{Name: "run_command", Arguments: sh(t, fmt.Sprintf("touch %s/%d; sleep 600", dir, i))}
						go func() {
							if res, err := c.CallTool(context.Background(), p); err != nil {
								answers <- err.Error()
							} else {
								answers <- texts(res)[0]
							}
						}()
					}
					call(0)
					call(1)
					eventually(t, func() bool {
						files, err := os.ReadDir(dir)
						return err == nil && len(files) == 2
					})
					call(2)
					eventually(t, func() bool { return strings.Contains(c.server.String(), "waits for its turn") })
					if err := c.server.end(tc.signal); err != nil {
						t.Fatal(err)
					}
					aborted := 0
					for range 3 {
						// The latter with an exit code, where the command was only being started.
						if got := <-answers; strings.HasPrefix(got, "sh process was aborted.") || strings.HasPrefix(got, "Tool was aborted: the server is shutting down") {
							aborted++
						} else if !strings.Contains(got, "the call ended before its turn: the server is shutting down") {
							t.Errorf("answered with %q\n%s", got, c.server)
						}
					}
					if aborted != 2 {
						t.Errorf("%d were aborted", aborted)
					}
				}
			})
		})
	}
}

// A client that does not go on with its request does not hold up anything for long.
func TestHalfSentBody(t *testing.T) {
	t.Parallel()
	s := overHTTP(t, nil)
	conn, err := net.Dial("tcp", strings.Split(s.url, "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(generous / 2))
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: "+strings.Split(s.url, "/")[2]+"\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error("the server waits on:", err)
	}
}

// talk starts the server over stdio and makes calls, the last one of which runs sleep. It
// returns when that is running.
func talk(t *testing.T, stdout io.Writer, calls ...string) (p *process, in io.WriteCloser) {
	t.Helper()
	p = command(t, nil)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = stdout, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := append([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, calls...)
	lines = append(lines, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"sleep","args":["600"]}}}`)
	for _, line := range lines {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return len(leftovers.With(p.mark)) > 1 })
	return p, in
}

// A client that is gone closes the server's input.
func TestInputEnds(t *testing.T) {
	t.Parallel()
	p, in := talk(t, nil,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deaf","arguments":{"seconds":600}}}`)
	in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	leftovers.None(t, p.mark)
	if n := strings.Count(p.String(), " exit_code=130"); n != 3 {
		t.Errorf("%d calls were aborted\n%s", n, p)
	}
}

// playHost is a host that holds the server's stdin open by another process that it has started, and
// waits to be killed. That process ends with the stdin of the host.
func playHost() {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	holder := exec.Command("cat")
	holder.Stdin, holder.ExtraFiles = os.Stdin, []*os.File{write}
	server := exec.Command(exe)
	server.Env = append(server.Environ(), asHost+"=", asMain+"=1")
	server.Stdin, server.Stdout, server.Stderr = read, os.Stdout, os.Stderr
	if err := errors.Join(holder.Start(), server.Start()); err != nil {
		panic(err)
	}
	read.Close()
	_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	_ = server.Wait()
}

// SPEC 16.1: a host that is killed takes the server with it, also while another process holds the
// server's stdin open.
func TestHostEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a system that tells which process holds stdin open")
	}
	t.Parallel()
	p := command(t, []string{asHost + "=1"})
	life, holder, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	p.cmd.Stdin, p.cmd.Stdout = life, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	life.Close()
	out.Close()
	_, err = bufio.NewReader(answers).ReadString('\n') // so the server runs
	if err := errors.Join(err, p.cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	eventually(t, func() bool { return len(leftovers.With(p.mark)) == 1 })
	if got := leftovers.With(p.mark); len(got) != 1 || !strings.HasPrefix(got[0], "cat") {
		t.Errorf("%q run, want the holder alone", got)
	}
	holder.Close()
	leftovers.None(t, p.mark)
}

// One that reads no more is found out with the next answer, and the server lives to clean up.
func TestOutputEnds(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, in := talk(t, w)
	w.Close()
	r.Close()
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"pattern":"("}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	leftovers.None(t, p.mark)
	if !p.cmd.ProcessState.Exited() || !strings.Contains(p.String(), "tool=run_command") {
		t.Errorf("%v\n%s", p.cmd.ProcessState, p)
	}
}

// A write to a client that is gone is an error of that write, and not the end of the server.
func TestBrokenPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there")
	}
	t.Parallel()
	c := ways[0].connect(t, nil, nil)
	if err := c.server.cmd.Process.Signal(syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	if res, got := c.must(t, "run_command", sh(t, "sleep .2; echo on")); res.IsError {
		t.Errorf("%q", got)
	}
}

// SPEC 3.11: a client that disconnects aborts a call of protocol 2026-07-28. One of an older
// protocol runs on, until its limits stop it. The server serves others as before.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	s := overHTTP(t, []string{"RUN_COMMAND_TIMEOUT_MS=6000"})
	running := func() int { return len(leftovers.With(s.mark)) - 1 }
	headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_command"}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`
	const params = `"name":"run_command","arguments":{"command":"sleep","args":["600"]}`

	disconnect := s.post(t, headers, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+meta+params+`}}`)
	eventually(t, func() bool { return running() > 0 })
	disconnect()
	eventually(t, func() bool { return running() == 0 && strings.Contains(s.String(), " exit_code=130") })

	// Now a client of the older protocol.
	session := s.do(t, nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	headers = map[string]string{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session}
	s.do(t, headers, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	disconnect = s.post(t, headers, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`)
	eventually(t, func() bool { return running() > 0 })
	disconnect()
	eventually(t, func() bool { return running() == 0 && strings.Contains(s.String(), " exit_code=124") })
	if n := strings.Count(s.String(), " exit_code=130"); n != 1 {
		t.Errorf("%d calls were aborted\n%s", n, s)
	}
}

// post sends a message and does not wait for the answer. Disconnect closes the connection.
func (s *process) post(t *testing.T, headers map[string]string, body string) (disconnect func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		if res, err := http.DefaultClient.Do(s.request(ctx, headers, body)); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// do sends a message and returns the head of the answer.
func (s *process) do(t *testing.T, headers map[string]string, body string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	res, err := http.DefaultClient.Do(s.request(ctx, headers, body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

func (s *process) request(ctx context.Context, headers map[string]string, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	return r
}

// Web pages may not call, whatever name they have for this machine.
func TestWebPages(t *testing.T) {
	t.Parallel()
	s := overHTTP(t, nil)
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for name, tc := range map[string]struct {
		header, value string
		want          int
	}{
		"a program":       {"X-Any", "thing", http.StatusOK},
		"a page":          {"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"an old browser":  {"Origin", "http://example.com", http.StatusForbidden},
		"another name":    {"Host", "example.com", http.StatusForbidden},
		"its own address": {"Host", strings.Split(s.url, "/")[2], http.StatusOK},
	} {
		r := s.request(t.Context(), map[string]string{tc.header: tc.value}, initialize)
		if tc.header == "Host" {
			r.Host = tc.value
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tc.want {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}
