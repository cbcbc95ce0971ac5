package mcpsdk_test

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A stopper tells how the calls of "silent" end.
type stopper struct {
	started chan struct{}
	ended   chan timeout.Snapshot
}

func newStopper(s *mcp.Server, limits timeout.Config) *stopper {
	st := &stopper{make(chan struct{}, 8), make(chan timeout.Snapshot, 8)}
	mcpsdk.Install(s, nil, mcpsdk.WithOptions(limits, timeout.WithHooks(timeout.Hooks{
		Started:  func(context.Context, timeout.Snapshot) { st.started <- struct{}{} },
		Finished: func(_ context.Context, s timeout.Snapshot) { st.ended <- s },
	})))
	return st
}

func (st *stopper) endsWith(t *testing.T, code int) {
	t.Helper()
	select {
	case s := <-st.ended:
		if timeout.ExitCode(s.Err) != code {
			t.Errorf("ended by %v, want exit code %d", s.Err, code)
		}
	case <-time.After(slack):
		t.Error("the tool runs on")
	}
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	cmd := child("unlimited")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(2*slack, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent"}}`+"\n")
	var lines []string
	for r := bufio.NewScanner(told); r.Scan(); {
		lines = append(lines, r.Text())
		if len(lines) == 1 { // a dead process holds neither end
			in.Close()
			out.Close()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"started silent", "finished silent 130"}, lines); d != "" {
		t.Error(d)
	}
}
