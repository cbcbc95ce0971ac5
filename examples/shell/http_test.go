//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// A web is a server over HTTP.
type web struct {
	*process
	url, token string
}

func overHTTP(t *testing.T, args ...string) *web {
	t.Helper()
	file := filepath.Join(t.TempDir(), "new", "token")
	p := server(t, append([]string{"-http", "127.0.0.1:0", "-token-file", file}, args...)...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &web{process: p}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v\n%s", err, p)
		}
		leftovers.None(t, p.mark)
	})
	listening := regexp.MustCompile(`listening on (\S+),`)
	harness.Eventually(t, "the server to listen", func() bool {
		m := listening.FindStringSubmatch(p.String())
		if m != nil {
			w.url = m[1]
		}
		return m != nil
	})
	b, err := os.ReadFile(file)
	info, serr := os.Stat(file)
	if err != nil || serr != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(err, serr, info)
	}
	w.token = strings.TrimSpace(string(b))
	return w
}

// bearer sends the token, and can be cut off as a client that is killed is.
type bearer struct {
	token string
	life  context.Context
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(b.life, cancel)
	r = r.Clone(ctx)
	r.Header.Set("Authorization", "Bearer "+b.token)
	if b.life.Err() != nil {
		stop()
		cancel()
		return nil, context.Cause(b.life)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a session, and a function that ends its connections without a word.
func (w *web) connect(t *testing.T) (*session, func()) {
	t.Helper()
	life, vanish := context.WithCancel(context.Background())
	t.Cleanup(vanish)
	return connect(t, w.process, "2025-11-25", &mcp.StreamableClientTransport{
		Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer{w.token, life}}, MaxRetries: -1,
	}), vanish
}

// Each client sees its own jobs, and a client that ends its session ends them.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := overHTTP(t)
	one, _ := w.connect(t)
	two, _ := w.connect(t)
	one.call("run", args{"command": "echo secret of one; sleep 600", "wait_s": 0})
	for tool, in := range map[string]args{"job_read": {"job": 1}, "job_write": {"job": 1, "text": "x"}, "job_signal": {"job": 1, "signal": "kill"}} {
		if got := two.fails(tool, in); !strings.Contains(got, "there is no such job") {
			t.Error(got)
		}
	}
	two.call("run", args{"command": "sleep 601", "wait_s": 0})
	var all list
	if _, _, err := two.ask(t.Context(), "job_list", args{}, &all); err != nil || len(all.Jobs) != 1 || all.Jobs[0].Command != "sleep 601" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "the jobs of one session alone to end", func() bool {
		left := strings.Join(leftovers.With(w.mark), "\n")
		return !strings.Contains(left, "sleep 600") && strings.Contains(left, "sleep 601")
	})
	if a, _ := two.call("job_read", args{"job": 1, "wait_s": 0}); a.State != running {
		t.Errorf("%+v", a)
	}
}

// A client that is killed does not say so. Its jobs end when it has not come back for a time.
func TestClientVanishes(t *testing.T) {
	if !full() {
		t.Skip("takes the 10 s of comeBack; set SHELL_ATTACK_FULL")
	}
	t.Parallel()
	w := overHTTP(t)
	s, vanish := w.connect(t)
	s.call("run", args{"command": "sleep 600", "wait_s": 0})
	go func() { _, _, _ = s.ask(context.Background(), "run", args{"command": "sleep 601"}, new(answer)) }()
	harness.Eventually(t, "the second command", func() bool { return strings.Contains(strings.Join(leftovers.With(w.mark), "\n"), "sleep 601") })
	vanish()
	harness.Eventually(t, "both commands to end", func() bool { return !strings.Contains(strings.Join(leftovers.With(w.mark), "\n"), "sleep 60") })
}

// A client that does not ask for the rest finds the command among its jobs. It may begin at the beginning: what the lost
// answer said counts as returned.
func TestConnectionBreaksForGood(t *testing.T) {
	t.Parallel()
	w := overHTTP(t)
	s, _ := w.connect(t)
	held, release := gate(t)
	ctx, cut := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(
			`{"jsonrpc":"2.0","id":"lost","method":"tools/call","params":{"name":"run","arguments":{"command":"echo begun; `+held+`; echo done","wait_s":600}}}`))
		if err != nil {
			lost <- err
			return
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + w.token}, sessionHeader: {s.ID()}, "Mcp-Protocol-Version": {"2025-11-25"}}
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		lost <- err
	}()
	harness.Eventually(t, "the command to start", func() bool { return strings.Contains(w.String(), `"msg":"start"`) })
	cut()
	if err := <-lost; err == nil {
		t.Fatal("the answer has come")
	}
	var all list
	if _, _, err := s.ask(t.Context(), "job_list", args{}, &all); err != nil || len(all.Jobs) != 1 || all.Jobs[0].State != running {
		t.Errorf("%+v, %v", all, err)
	}
	release()
	if a, _ := s.call("job_read", args{"job": 1}); exit(a) != 0 || a.Reason != "exited" || !strings.HasSuffix(a.Output, "done\n") {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("job_read", args{"job": 1, "cursor": 0}); a.Output != "begun\ndone\n" {
		t.Errorf("%+v", a)
	}
}

// gate returns a shell command that waits until release is called.
func gate(t *testing.T) (held string, release func()) {
	file := filepath.Join(t.TempDir(), "go")
	return "until [ -e " + file + " ]; do sleep .02; done", func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

// Only a request that was meant for this server, that no web page has sent, and that has the token, reaches it.
func TestGuard(t *testing.T) {
	t.Parallel()
	w := overHTTP(t)
	at := strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/mcp")
	port := at[strings.LastIndexByte(at, ':'):]
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for _, tt := range []struct {
		name, host, auth string
		origin           []string
		code             int
	}{
		{"all right", at, "Bearer " + w.token, nil, 200},
		{"localhost", "localhost" + port, "bearer " + w.token, nil, 200},
		{"its own origin", at, "Bearer " + w.token, []string{"http://" + at}, 200},
		{"no token", at, "", nil, 401},
		{"another token", at, "Bearer " + strings.Repeat("A", len(w.token)), nil, 401},
		{"half of the token", at, "Bearer " + w.token[:len(w.token)/2], nil, 401},
		{"more than the token", at, "Bearer " + w.token + "A", nil, 401},
		{"another scheme", at, "Basic " + w.token, nil, 401},
		{"no scheme", at, w.token, nil, 401},
		{"another host", "evil.example" + port, "Bearer " + w.token, nil, 403},
		{"another port", "127.0.0.1:1", "Bearer " + w.token, nil, 403},
		{"no port", "127.0.0.1", "Bearer " + w.token, nil, 403},
		{"another origin", at, "Bearer " + w.token, []string{"http://evil.example"}, 403},
		{"no origin at all", at, "Bearer " + w.token, []string{"null"}, 403},
		{"two origins", at, "Bearer " + w.token, []string{"http://" + at, "http://evil.example"}, 403},
		{"an empty origin", at, "Bearer " + w.token, []string{""}, 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Origin": tt.origin}
		if tt.auth != "" {
			r.Header.Set("Authorization", tt.auth)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.code || bytes.Contains(text, []byte(w.token)) {
			t.Errorf("%s: %s %s", tt.name, res.Status, text)
		}
	}
	harness.Eventually(t, "all refusals to be logged", func() bool { return strings.Count(w.String(), `"msg":"refused"`) == 13 })
	if strings.Contains(w.String(), w.token) {
		t.Errorf("%s", w)
	}
}

// A file that others could have read, or put there, is no secret: the server does not start.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := strings.Repeat("t", 40) + "\n"
	good := write("good", token, 0o600)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "new"), dangling); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{good, ""},
		{filepath.Join(dir, "made"), ""},
		{write("read only", token, 0o400), ""},
		{write("group", token, 0o640), "has mode 0640"},
		{write("others", token, 0o604), "has mode 0604"},
		{write("writable", token, 0o622), "has mode 0622"},
		{link, "is a symbolic link"},
		{dangling, "is a symbolic link"},
		{fifo, "is not a regular file"},
		{dir, "is not a regular file"},
		{write("short", "hello\n", 0o600), "want one line of 32 to 4096"},
		{write("empty", "", 0o600), "want one line of 32 to 4096"},
		{write("two lines", token+token, 0o600), "want one line of 32 to 4096"},
		{write("long", strings.Repeat("t", 5000), 0o600), "want one line of 32 to 4096"},
	} {
		got, err := loadToken(tt.path)
		if tt.want == "" && (err != nil || len(got) < 32) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
	}
	p := server(t, "-http", "127.0.0.1:0", "-token-file", link)
	if code := p.code(t); code != 1 || !strings.Contains(p.String(), "shell: -token-file: "+link+" is a symbolic link") {
		t.Errorf("exit code %d\n%s", code, p)
	}
}

// Without -token-file the token is where the user's other settings are.
func TestTokenFileOfTheUser(t *testing.T) {
	t.Parallel()
	p, dir := server(t, "-http", "127.0.0.1:0"), t.TempDir()
	p.cmd.Env = append(p.cmd.Env, "XDG_CONFIG_HOME="+dir)
	want := filepath.Join(dir, "shell-token")
	if runtime.GOOS == "darwin" {
		want = "/Library/Application Support/shell-token"
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the server to listen", func() bool { return strings.Contains(p.String(), "listening on ") })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil || !strings.Contains(p.String(), want+"\n") {
		t.Errorf("%v, want %s in\n%s", err, want, p)
	}
}

// No other machine can connect, and flags that make no sense are said to.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-http", "0.0.0.0:0"}, 1, "-http: 0.0.0.0:0: want a loopback address"},
		{[]string{"-http", "[::]:0"}, 1, "want a loopback address"},
		{[]string{"-http", "example.com:80"}, 1, "want a loopback address"},
		{[]string{"-http", "8080"}, 1, "want HOST:PORT"},
		{[]string{"-dir", "/nowhere"}, 2, "-dir: stat /nowhere"},
		{[]string{"-shell", "nosuchshell"}, 2, "-shell: "},
		{[]string{"-jobs", "0"}, 2, "-jobs 0: want 1 to 1000"},
		{[]string{"-memory", "lots"}, 2, "want a number of bytes"},
		{[]string{"-linger", "-1s"}, 2, "-linger -1s: want 0 or more"},
		{[]string{"-max-timeout", "1ms"}, 2, "-max-timeout 1ms: want 1s or more"},
		{[]string{"-env", "=x"}, 2, "want NAME, NAME=VALUE or a pattern"},
		{[]string{"-env", "[x"}, 2, "want NAME, NAME=VALUE or a pattern"},
		{[]string{"x"}, 2, `argument "x": want none`},
		{[]string{"-h"}, 0, "-token-file"},
	} {
		p := server(t, append([]string{"-token-file", filepath.Join(t.TempDir(), "token")}, tt.args...)...)
		if code := p.code(t); code != tt.code || !strings.Contains(p.String(), tt.want) {
			t.Errorf("%q: exit code %d\n%s", tt.args, code, p)
		}
	}
}
