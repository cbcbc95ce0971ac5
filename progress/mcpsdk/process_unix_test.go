//go:build unix

package mcpsdk_test

import (
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// SPEC 6.32: another process makes the standard streams of a server non-blocking, and its client reads late.
func TestNonBlockingStreams(t *testing.T) {
	t.Parallel()
	sdktest.NonBlocking(t, child("long"))
}

// SPEC 3.22, with a real process and its streams.
func TestAnswersAtShutdown(t *testing.T) {
	t.Parallel()
	sdktest.AnswersAtShutdown(t, child("long"), 3, 3)
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	t.Parallel()
	sdktest.Crash(t, child("unlimited"))
}

// A command that does not answer is made to end before Connect returns.
func TestConnectLeavesNoProcess(t *testing.T) {
	t.Parallel()
	cmd := child("deaf")
	_, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
		// The SDK waits for so long after each step, the last included: on a busy machine
		// less is too short for a process that was killed to be gone.
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: 3 * time.Second}, nil
	}, &mcpsdk.ConnectOptions{Timeout: 200 * ms, Backoff: request.Backoff{Retries: -1}})
	if timedOut(t, err, "connect"); cmd.ProcessState == nil {
		t.Errorf("process %d is left", cmd.Process.Pid)
	}
}
