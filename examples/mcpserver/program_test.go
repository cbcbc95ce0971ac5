package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	running     = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"sh","args":["-c","echo begun; exec sleep 600"]},"_meta":{"progressToken":"token"}}}`
)

var (
	jsonBlock = regexp.MustCompile("(?ms)^```json\n(\\{\n.*?)^```$")
	shellLine = regexp.MustCompile(`(?m)^    mcpserver (.*)$`)
)

// A hostConfig is a host's file, with the name that it has for servers.
type hostConfig map[string]map[string]struct {
	Command, Type, URL string
	Args               []string
	Env                map[string]string
}

// What the README says to put into a host's configuration starts the server, or is where it listens.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	installed := filepath.Join(home, "go", "bin", "mcpserver")
	self := harness.Command("server")
	if err := errors.Join(os.MkdirAll(filepath.Dir(installed), 0o755), os.Symlink(self.Path, installed)); err != nil {
		t.Skip(err)
	}
	flags := strings.Fields(shellLine.FindStringSubmatch(string(readme))[1])
	address := flags[1]
	stdio, web := 0, 0
	for _, block := range jsonBlock.FindAllStringSubmatch(string(readme), -1) {
		var hosts hostConfig
		if err := json.Unmarshal([]byte(block[1]), &hosts); err != nil {
			t.Fatalf("%v in %s", err, block[1])
		}
		for key, servers := range hosts {
			if key != "mcpServers" && key != "servers" {
				t.Errorf("no host knows %s", key)
			}
			c := servers["deadlines"]
			if c.Type == "http" {
				web++
				if want := "http://" + address + "/mcp"; c.URL != want || flags[0] != "-http" {
					t.Errorf("%s, want %s", c.URL, want)
				}
				continue
			}
			stdio++
			cmd := exec.Command(strings.NewReplacer("${HOME}", home, "${userHome}", home).Replace(c.Command), c.Args...)
			cmd.Env = self.Env
			for k, v := range c.Env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Hour}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Errorf("%v, %v", tools, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if stdio != 2 || web != 2 {
		t.Errorf("found %d and %d configurations", stdio, web)
	}
	// The same with another port, where nothing else can be. And without a host's name nobody else can connect.
	for _, at := range []string{strings.Replace(address, "8137", "0", 1), ":0"} {
		if url, _ := overHTTP(t, "-http", at); !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/mcp") {
			t.Error(url)
		}
	}
}

// Whatever ends the program over stdio, its command has begun by then, and the program ends by itself with the exit code of the row.
// What it leaves is found at the end of the suite.
func TestEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there, and no sh")
	}
	const most = 16 << 20
	const head, tail = `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"x":"`, `"}}}`
	tooLong := head + strings.Repeat("a", most+1-len(head)-len(tail)) + tail + "\n"
	type program struct {
		*exec.Cmd
		in  io.WriteCloser
		out io.ReadCloser
	}
	signalled := func(s os.Signal) func(p program) error { return func(p program) error { return p.Process.Signal(s) } }
	writes := func(line string) func(p program) error {
		return func(p program) error {
			_, err := io.WriteString(p.in, line)
			if line == tooLong { // a server that has ended reads no more
				err = nil
			}
			return err
		}
	}
	for _, tc := range []struct {
		name     string
		end      func(p program) error
		code     int
		says     string
		answered bool
	}{
		{"SIGTERM", signalled(syscall.SIGTERM), 0, "", true},
		{"SIGINT", signalled(os.Interrupt), 0, "", true},
		{"SIGHUP", signalled(syscall.SIGHUP), 0, "", true},
		{"its input ends", func(p program) error { return p.in.Close() }, 0, "", false},
		{"a line that is too long", writes(tooLong), 1, "inbound JSON-RPC frame exceeded the configured maximum line length", false},
		{"a line that is no JSON", writes("hello\n"), 1, "invalid character 'h'", false},
		{"a line that is no message", writes("{\"hello\":1}\n"), 1, "invalid message version tag", false},
		// The next answer finds it out, and a write to a pipe without a reader does not kill the server.
		{"nobody reads", func(p program) error {
			return errors.Join(p.Process.Signal(syscall.SIGPIPE), p.out.Close(), writes(`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")(p))
		}, -1, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := program{Cmd: harness.Command("server", "-progress-interval", "20ms")}
			stderr, err := new(log), error(nil)
			p.Stderr = stderr
			p.in, err = p.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if p.out, err = p.StdoutPipe(); err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{initialize, initialized, running} {
				if _, err := io.WriteString(p.in, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			lines := bufio.NewReader(p.out)
			until := func(text string) (line string, found bool) {
				for err := error(nil); err == nil && !found; found = strings.Contains(line, text) {
					line, err = lines.ReadString('\n')
				}
				return line, found
			}
			if _, begun := until(`"message":"begun"`); !begun {
				t.Fatal(stderr)
			}
			if err := tc.end(p); err != nil {
				t.Error(err)
			}
			if line, answered := until(`"id":1,`); answered != tc.answered || answered && !strings.Contains(line, "sh process was aborted.") {
				t.Errorf("answered with %q", line)
			}
			_ = p.Wait()
			if code := p.ProcessState.ExitCode(); code != tc.code && (tc.code >= 0 || !p.ProcessState.Exited()) || !strings.Contains(stderr.String(), tc.says) {
				t.Errorf("%v, want exit code %d and %q\n%s", p.ProcessState, tc.code, tc.says, stderr)
			}
			if n := strings.Count(stderr.String(), " exit_code=130"); n != 1 {
				t.Errorf("%d calls were aborted\n%s", n, stderr)
			}
		})
	}
}

// request sends a message as a client does, and calls use with the answer while that may go on.
func request(t *testing.T, ctx context.Context, url string, headers map[string]string, body string, use func(*http.Response)) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	if host := headers["Host"]; host != "" {
		r.Host = host
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" && body == initialize {
		t.Cleanup(func() {
			if r, err := http.NewRequest(http.MethodDelete, url, nil); err == nil {
				r.Header.Set("Mcp-Session-Id", id)
				if res, err := http.DefaultClient.Do(r); err == nil {
					res.Body.Close()
				}
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
	if use != nil {
		use(res)
	}
	_, _ = io.Copy(io.Discard, res.Body)
}

// Web pages may not call, whatever name they have for this machine.
func TestWebPages(t *testing.T) {
	t.Parallel()
	url, _ := overHTTP(t, "-http", "127.0.0.1:0")
	for name, tc := range map[string]struct {
		header, value string
		want          int
	}{
		"a program":       {"X-Any", "thing", http.StatusOK},
		"a page":          {"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"an old browser":  {"Origin", "http://example.com", http.StatusForbidden},
		"another name":    {"Host", "example.com", http.StatusForbidden},
		"its own address": {"Host", strings.Split(url, "/")[2], http.StatusOK},
	} {
		request(t, t.Context(), url, map[string]string{tc.header: tc.value}, initialize, func(res *http.Response) {
			if res.StatusCode != tc.want {
				t.Errorf("%s: %s", name, res.Status)
			}
		})
	}
}

// With -inspect the page shows what runs, and it is not where the clients are.
func TestInspect(t *testing.T) {
	t.Parallel()
	url, stderr := overHTTP(t, "-http", "127.0.0.1:0", "-inspect", "127.0.0.1:0")
	page := regexp.MustCompile(`(?m)^running calls: (\S+)$`).FindStringSubmatch(stderr.String())
	if page == nil || strings.HasPrefix(page[1], strings.TrimSuffix(url, "/mcp")) {
		t.Fatal(stderr)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(page[1])
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || !strings.Contains(string(text), "running, watched for") {
		t.Errorf("%s: %s", res.Status, text)
	}
	if _, err := servePage("127.0.0.1", io.Discard, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an address without a port")
	}
}

// onePipe is a listener with one connection.
type onePipe struct{ accepts chan net.Conn }

func (l onePipe) Accept() (net.Conn, error) {
	if c, ok := <-l.accepts; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l onePipe) Close() error   { close(l.accepts); return nil }
func (l onePipe) Addr() net.Addr { return nil }

// A client that does not go on with its request does not hold up anything for long.
func TestHalfSentBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := onePipe{accepts: make(chan net.Conn, 1)}
		l.accepts <- there
		server := webServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
		go server.Serve(l)
		begun := time.Now()
		fmt.Fprint(here, "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{")
		if _, err := io.Copy(io.Discard, here); err != nil || time.Since(begun) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		server.Close()
	})
}
