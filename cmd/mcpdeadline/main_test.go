package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// generous bounds waits. Only a test that fails waits as long.
const generous = 2 * time.Minute

// interrupt is the signal that asks a program to end.
var interrupt os.Signal = os.Interrupt

const asMain = "MCPPROXY_TEST_MAIN"

// asHost has the test binary be a host; see playHost.
const asHost = "MCPDEADLINE_TEST_HOST"

// TestMain lets the test binary be the proxy and the server, too.
func TestMain(m *testing.M) {
	procgroup.HelperMain()
	switch {
	case len(os.Args) > 1 && os.Args[1] == "evil":
		evil()
	case len(os.Args) > 1 && os.Args[1] == "sink":
		sink()
		os.Exit(0)
	case len(os.Args) > 1 && os.Args[1] == "sleeper":
		time.Sleep(time.Hour)
	case os.Getenv(asHost) != "":
		playHost(os.Args[1:])
		os.Exit(0)
	case os.Getenv(asMain) != "":
		main()
	}
	// The tests mostly wait, so more of them than processors may run at once.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
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

// A host is a client that has started the proxy over stdio.
type host struct {
	t    testing.TB
	cmd  *exec.Cmd
	mark string
	in   io.WriteCloser

	mu     sync.Mutex
	lines  []string             // all that came, in order
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

// startProxy starts the proxy with args.
func startProxy(t testing.TB, env []string, args ...string) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*generous)
	h := &host{t: t, cmd: exec.CommandContext(ctx, self(t), args...), mark: leftovers.Mark(), waits: make(map[string]chan wire), ended: make(chan struct{})}
	// Under the race detector, each process would otherwise wait for a second when it exits.
	h.cmd.Env = append(h.cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", h.mark)
	h.cmd.Env = append(h.cmd.Env, env...)
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in = in
	h.cmd.Stderr = writerFunc(func(p []byte) (int, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err.Len() < 1<<20 {
			h.err.Write(p)
		}
		return len(p), nil
	})
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			h.take(strings.TrimSuffix(line, "\n"))
		}
	}()
	go func() {
		<-read
		_ = h.cmd.Wait()
		cancel()
		close(h.ended)
	}()
	t.Cleanup(func() {
		_ = h.in.Close()
		select {
		case <-h.ended:
		case <-time.After(generous):
			t.Error("the proxy does not end")
			_ = h.cmd.Process.Kill()
		}
		leftovers.None(t, h.mark)
		if t.Failed() {
			t.Logf("stderr: %.4000s", h.stderr())
		}
	})
	return h
}

func (h *host) take(line string) {
	var w wire
	_ = json.Unmarshal([]byte(line), &w)
	w.raw = line
	h.mu.Lock()
	h.lines = append(h.lines, line)
	var c chan wire
	if w.Method == "" {
		_, c = find(h.waits, string(w.ID))
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

func (h *host) stderr() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err.String()
}

// got returns the lines that contain a text.
func (h *host) got(text string) (found []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}

func (h *host) send(line string) {
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Errorf("sending %.80s: %v", line, err)
	}
}

// ask sends a request and returns the channel of its answers.
func (h *host) ask(id, method, params string) <-chan wire {
	c := make(chan wire, 8)
	h.mu.Lock()
	h.waits[id] = c
	h.mu.Unlock()
	h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return c
}

func (h *host) await(c <-chan wire, what string) wire {
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

// start calls a tool. args is JSON, and token is JSON or empty.
func (h *host) start(id, tool, args, token string) <-chan wire {
	meta := ""
	if token != "" {
		meta = `,"_meta":{"progressToken":` + token + `}`
	}
	return h.ask(id, "tools/call", `{"name":"`+tool+`","arguments":`+args+meta+`}`)
}

func (h *host) call(id, tool, args string) wire {
	h.t.Helper()
	return h.await(h.start(id, tool, args, ""), tool)
}

const initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`

// initialized does the handshake.
func (h *host) initialized() *host {
	h.t.Helper()
	h.await(h.ask(`"init"`, "initialize", initialize), "initialize")
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

// connect starts a proxy in front of the evil server.
func connect(t testing.TB, flags ...string) *host {
	t.Helper()
	return startProxy(t, nil, append(flags, evilArgs(t)...)...).initialized()
}

// eventually waits until is returns true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > generous {
			t.Fatalf("still waiting for %s", what)
		}
	}
}
