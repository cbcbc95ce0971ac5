//go:build unix

package mcpgo_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
)

// SPEC 6.32: another process makes the standard streams of a server non-blocking, and its client reads late.
func TestNonBlockingStreams(t *testing.T) {
	t.Parallel()
	sdktest.NonBlocking(t, child())
}

// SPEC 3.22, with a real process and its streams: calls that run, and calls that wait for one of the 5 workers.
func TestAnswersAtShutdown(t *testing.T) {
	t.Parallel()
	sdktest.AnswersAtShutdown(t, child(), 5, 8)
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	t.Parallel()
	sdktest.Crash(t, child())
}
