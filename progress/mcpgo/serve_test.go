package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

const (
	shutdownText = "Tool was aborted: the server is shutting down"
	initialize   = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// Each call that has come when the process is told to end has its answer, over stdio, and the process ends with 0: those that run, and those that wait for one of
// the 5 workers.
func TestAnswersAtShutdownStdio(t *testing.T) {
	t.Parallel()
	if err := shutdownOnce(t); err != nil {
		t.Error(err)
	}
}

// shutdownOnce has a server over stdio run five calls and three wait, tells it to end, and
// returns what is wrong with what it says after that.
func shutdownOnce(t *testing.T) error {
	const calls, workers = 8, 5
	ctx, cancel := context.WithTimeout(t.Context(), 3*slack)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(cmd.Environ(), serverEnv+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // where the test has failed
	if _, err := io.WriteString(in, initialize+"\n"); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadBytes('\n'); err != nil { // mcp-go takes the next line while it initializes
		return err
	}
	lines := []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`}
	for id := range calls {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","_meta":{"progressToken":%[1]d}}}`, id))
	}
	lines = append(lines, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`) // what is before it has arrived
	if _, err := io.WriteString(in, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	running, ready, answered := 0, 0, 0
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		var m struct {
			ID     any
			Method string
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		switch m.ID.(type) {
		case float64:
			answered++
			if !m.Result.IsError || !strings.HasPrefix(m.Result.Content[0].Text, shutdownText) {
				return fmt.Errorf("answered with %.300s", line)
			}
		case nil:
			running++
			ready++
		case string:
			if m.ID == "ping" {
				ready++
			}
		}
		if ready == workers+1 {
			ready = 0
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	if err := cmd.Wait(); err != nil || running != workers || answered != calls {
		return fmt.Errorf("%v; %d ran, and of %d calls %d were answered", err, running, calls, answered)
	}
	return nil
}

// A client that leaves while the server ends is not waited for: nobody reads what is left to say.
func TestServeClientLeavesAtTheEnd(t *testing.T) {
	for range 6 { // mcp-go calls or drops what waits, as it happens
		s, started, _ := watched()
		release := make(chan bool)
		s.AddTool(mcp.NewTool("total"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-release
			return mcp.NewToolResultText("done"), nil
		})
		std := server.NewStdioServer(s)
		server.WithWorkerPoolSize(1)(std)
		fromClient, in := io.Pipe()
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- mcpgo.Serve(ctx, std, fromClient, io.Discard, time.Hour) }()
		_, _ = io.WriteString(in, initialize+"\n")
		for id := range 2 {
			_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"total"}}`+"\n", id)
		}
		_, _ = io.WriteString(in, "\n") // what is before it has arrived
		within(t, started, "the start")
		end()
		in.Close()
		time.Sleep(20 * ms) // mcp-go has seen it
		close(release)
		if err := within(t, served, "the end"); err != nil {
			t.Error(err)
		}
	}
}

// A client's message that is no call of a tool, or has an odd id, is mcp-go's to answer.
func TestServeOddRequests(t *testing.T) {
	r := newRaw(t, newServer())
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"noop"}}`,
		`{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":"noop"}}`,
		`{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"noop"}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"noop"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"noop"}}`,
		`[1]`, `nonsense`, ``, `null`,
	} {
		r.write(line)
	}
	for _, id := range []any{"a", 7.0} { // the same id again, too
		for range 2 {
			data, _ := json.Marshal(id)
			r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"noop"}}`, data))
			if _, m := r.answer(id); !strings.Contains(string(m.Result), "done") {
				t.Errorf("%v: %s %s", id, m.Result, m.Error)
			}
		}
	}
}
