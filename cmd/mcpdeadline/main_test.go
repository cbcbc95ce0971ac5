package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// generous bounds waits, in the time of the bubble. Only a test that fails waits as long.
const generous = 24 * time.Hour

// TestMain lets the test binary be the proxy, the server and the host, too.
func TestMain(m *testing.M) {
	procgroup.HelperMain()
	if len(os.Args) > 1 { // of what the proxy starts
		switch os.Args[1] {
		case "evil":
			evil(realLife{})
			return
		case "sink":
			sink()
			return
		case "sleeper":
			time.Sleep(time.Hour)
			return
		}
	}
	harness.Main(m, map[string]func(){"proxy": main, "host": playHost}, harness.Options{})
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// evilArgs returns the arguments that start the evil server.
func evilArgs(t testing.TB) []string { return []string{"--", self(t), "evil"} }

// A client is a host of the proxy over stdio: one that has started it as a process, or has it in its bubble.
type client struct {
	t    testing.TB
	cmd  *exec.Cmd       // nil in a bubble
	vm   *virtualMachine // nil outside
	out  *pipe           // stdout of the proxy, in a bubble
	in   io.WriteCloser
	stop context.CancelFunc // a signal to the proxy, in a bubble
	code int                // exit code, once it has ended

	mu     sync.Mutex
	begun  time.Time
	lines  []string // all that came, in order
	at     []time.Duration
	waits  map[string]chan wire // answers by id
	err    strings.Builder      // its stderr
	onLine func(wire)
	ended  chan struct{}
}

// A wire is a message as the host sees it.
type wire struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProgressToken json.RawMessage
		Progress      float64
		Message       string
		RequestID     json.RawMessage
	}
	Result struct {
		Content           []struct{ Text string }
		IsError           bool
		ResultType        string
		StructuredContent json.RawMessage
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
	}
	raw string
}

func (w wire) text() string {
	var all []string
	for _, c := range w.Result.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "|")
}

// outcome returns the kind and the exit code of a stopped call, or "".
func (w wire) outcome() string {
	var o struct {
		Kind     string
		ExitCode int
	}
	if raw := w.Result.Meta["io.github.tooldeadline/outcome"]; raw == nil || json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return fmt.Sprint(o.Kind, " ", o.ExitCode)
}

// startProxy starts the proxy in a bubble. env is that of its servers.
func startProxy(t testing.TB, env []string, args ...string) *client {
	t.Helper()
	return newMachine(env).host(t, args...)
}

// newMachine returns a machine of evil servers.
func newMachine(env []string) *virtualMachine {
	vm := &virtualMachine{program: func(p *virtual) { evil(p) }, env: make(map[string]string), network: newPipeListener()}
	for _, pair := range env {
		key, value, _ := strings.Cut(pair, "=")
		vm.env[key] = value
	}
	return vm
}

// host starts a proxy on the machine.
func (vm *virtualMachine) host(t testing.TB, args ...string) *client {
	t.Helper()
	in, out := newPipe(), newPipe()
	h := newHost(t, in)
	h.vm, h.out = vm, out
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	if !slices.Contains(args, "-http") {
		args = append([]string{"-host-pid", "0"}, args...)
	}
	go func() {
		h.code = vm.system().run(ctx, args, in, out, writerFunc(h.say))
		in.hangUp()
		out.Close()
	}()
	h.listen(out, func() {})
	t.Cleanup(func() {
		_ = h.in.Close()
		out.pause(false)
		if strings.Contains(h.stderr(), "listening on") {
			stop()
		}
		<-h.ended
		stop()
		vm.close()
		if n := vm.up(); n > 0 {
			t.Errorf("%d servers are left", n)
		}
		if t.Failed() {
			t.Logf("stderr: %.4000s", h.stderr())
		}
	})
	return h
}

// startReal starts the proxy as a process, with a deadline that only says that something hangs.
func startReal(t testing.TB, env []string, args ...string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := harness.Command("proxy", args...)
	cmd.Env = append(cmd.Env, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, in)
	h.cmd, cmd.Stderr = cmd, writerFunc(h.say)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	h.listen(out, func() {
		_ = cmd.Wait()
		h.code = cmd.ProcessState.ExitCode()
	})
	t.Cleanup(func() {
		_ = in.Close()
		<-h.ended
		cancel()
		if t.Failed() {
			t.Logf("stderr: %.4000s", h.stderr())
		}
	})
	return h
}

func newHost(t testing.TB, in io.WriteCloser) *client {
	return &client{t: t, in: in, begun: time.Now(), waits: make(map[string]chan wire), ended: make(chan struct{})}
}

// listen reads what the proxy sends, and then waits for its end.
func (h *client) listen(out io.Reader, wait func()) {
	go func() {
		defer close(h.ended)
		r := bufio.NewReaderSize(out, 64<<10)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			h.take(strings.TrimSuffix(line, "\n"))
		}
		wait()
	}()
}

// say takes what the proxy writes to its stderr.
func (h *client) say(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err.Len() < 1<<20 {
		h.err.Write(p)
	}
	return len(p), nil
}

func (h *client) take(line string) {
	var w wire
	_ = json.Unmarshal([]byte(line), &w)
	w.raw = line
	h.mu.Lock()
	h.lines, h.at = append(h.lines, line), append(h.at, time.Since(h.begun))
	var c chan wire
	if w.Method == "" {
		_, c = jsonrpc.Find(h.waits, string(w.ID))
	}
	on := h.onLine
	h.mu.Unlock()
	if c != nil {
		c <- w
	}
	if on != nil {
		on(w)
	}
}

func (h *client) stderr() string {
	if h.vm != nil {
		synctest.Wait()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err.String()
}

// got returns the lines that contain a text.
func (h *client) got(text string) (found []string) {
	if h.vm != nil {
		synctest.Wait()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}

func (h *client) send(line string) {
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Errorf("sending %.80s: %v", line, err)
	}
}

// ask sends a request and returns the channel of its answers.
func (h *client) ask(id, method, params string) <-chan wire {
	c := make(chan wire, 8)
	h.mu.Lock()
	h.waits[id] = c
	h.mu.Unlock()
	h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return c
}

func (h *client) await(c <-chan wire, what string) wire {
	h.t.Helper()
	select {
	case w := <-c:
		return w
	case <-h.ended:
		select {
		case w := <-c:
			return w
		default:
		}
		h.t.Fatalf("%s: the proxy has ended\n%.2000s", what, h.stderr())
	case <-time.After(generous):
		h.t.Fatalf("%s: no answer\n%.2000s", what, h.stderr())
	}
	panic("unreachable")
}

// answered sends a request and returns its answer.
func (h *client) answered(id, method, params string) wire {
	h.t.Helper()
	return h.await(h.ask(id, method, params), method)
}

// nothingMore checks that the host has got nothing but one answer to each of its requests.
func (h *client) nothingMore() {
	h.t.Helper()
	all := h.got("")
	h.mu.Lock()
	defer h.mu.Unlock()
	answers := make(map[string]int)
	for _, line := range all {
		var w wire
		_ = json.Unmarshal([]byte(line), &w)
		if answers[string(w.ID)]++; w.Method != "" || h.waits[string(w.ID)] == nil || answers[string(w.ID)] > 1 {
			h.t.Errorf("the host got %s", line)
		}
	}
}

// start calls a tool. args is JSON, and token is JSON or empty.
func (h *client) start(id, tool, args, token string) <-chan wire {
	meta := ""
	if token != "" {
		meta = `,"_meta":{"progressToken":` + token + `}`
	}
	return h.ask(id, "tools/call", `{"name":"`+tool+`","arguments":`+args+meta+`}`)
}

func (h *client) call(id, tool, args string) wire {
	h.t.Helper()
	return h.await(h.start(id, tool, args, ""), tool)
}

const initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`

// initialized does the handshake.
func (h *client) initialized() *client {
	h.t.Helper()
	h.answered(`"init"`, "initialize", initialize)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

// connect starts a proxy in front of the evil server.
func connect(t testing.TB, flags ...string) *client {
	t.Helper()
	return startProxy(t, nil, append(flags, evilArgs(t)...)...).initialized()
}

// eventually waits until is returns true, in the time of the bubble.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

// over reports whether a channel is closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bubble runs a test in a bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// pause reports whether d has passed before the end of ctx.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
