package mcpsdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

const shutdownText = "Tool was aborted: the server is shutting down"

// longTool beats once, so that its client knows that it runs, and has much to say when it ends.
func longTool(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	heartbeat.Beat(ctx)
	<-ctx.Done()
	return textResult(strings.Repeat("x", 128<<10)), nil // more than a pipe holds
}

// Each call that runs when the process is told to end has its answer, over stdio, and the process ends with 0.
func TestAnswersAtShutdownStdio(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there")
	}
	t.Parallel()
	if err := shutdownOnce(t, "long"); err != nil {
		t.Error(err)
	}
}

// shutdownOnce has a server over stdio run three calls, tells it to end, and returns what is
// wrong with what it says after that.
func shutdownOnce(t *testing.T, mode string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 3*slack)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(cmd.Environ(), modeEnv+"="+mode, "GORACE=atexit_sleep_ms=0")
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
	defer func() { in.Close(); _ = cmd.Wait() }()
	lines := []string{
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for id := 1; id <= 3; id++ {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","arguments":{},"_meta":{"progressToken":%[1]d}}}`, id))
	}
	if _, err := io.WriteString(in, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	running, answered := 0, 0
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
		switch {
		case m.Method == "notifications/progress":
			if running++; running == 3 {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
			}
		case m.ID != nil && m.ID != "i":
			if answered++; !m.Result.IsError || len(m.Result.Content) != 2 || m.Result.Content[0].Text != shutdownText {
				return fmt.Errorf("answered with %.300s", line)
			}
		}
	}
	if err := cmd.Wait(); err != nil || running != 3 || answered != 3 {
		return fmt.Errorf("%v; of %d calls %d were answered", err, running, answered)
	}
	return nil
}

const (
	initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	longCall   = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","arguments":{},"_meta":{%s}}}`
)
