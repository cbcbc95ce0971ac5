//go:build linux || windows

package procgroup_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The environment of the test binary as a child.
const (
	modeEnv = "HARNESS_MODE"        // what it does, instead of running the tests: see package harness
	pidsEnv = "PROCGROUP_TEST_PIDS" // a directory in which descendants leave their ids
)

const (
	shortGrace = 300 * time.Millisecond
	longLimit  = time.Minute
)

const aborted = "tool process was aborted."

// until waits for a condition, and fails the test if it does not come true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	harness.Eventually(t, what, is)
}

// want is what a test expects of a result.
type want struct {
	code            int
	reason          procgroup.Reason
	message         string
	escalated, held bool
}

// check compares a result with what the test expects, and with its error.
func check(t *testing.T, r *procgroup.Result, err error, w want) {
	t.Helper()
	if r == nil {
		t.Fatalf("no result, error %v", err)
	}
	if len(r.Survivors) > 0 { // killed, and not dead in time: it still held its pipes
		w.held = r.PipeHeld
	}
	if r.ExitCode != w.code || r.Reason != w.reason || r.Message != w.message || r.Escalated != w.escalated || r.PipeHeld != w.held {
		t.Errorf("code %d, reason %v, message %q, escalated %v, pipe held %v\nwant %+v\nstdout %q\nstderr %q",
			r.ExitCode, r.Reason, r.Message, r.Escalated, r.PipeHeld, w, r.Stdout, r.Stderr)
	}
	if got := timeout.ExitCode(err); got != r.ExitCode {
		t.Errorf("exit code of the error %v is %d, that of the result %d", err, got, r.ExitCode)
	}
	checkSystem(t, r)
}

// A logBuffer holds a log that may be written while the test reads it: a record about a heartbeat that is
// close to the idle limit comes from a goroutine of its own, which Wait does not wait for.
type logBuffer struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func (b *logBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.Reset()
}
