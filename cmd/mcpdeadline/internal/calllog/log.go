// Package calllog writes a log with a line of JSON for each call.
package calllog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/stopped"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Log writes a line of JSON for each call. A nil *Log writes nothing. Write never waits for the file.
type Log struct {
	out    *jsonrpc.Outbox
	full   sync.Once
	failed func(error)
}

// Open returns a Log that appends to the file called name, or writes to stderr if name is "-". If name is "", it
// returns nil and no error. The Log calls failed when a write fails, and when it first drops a line.
func Open(name string, stderr io.Writer, failed func(error)) (*Log, error) {
	w := stderr
	switch name {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("-log: %w", err)
		}
		w = f
	}
	l := &Log{failed: failed}
	l.out = jsonrpc.NewOutbox(w, func() {
		if l.out.Err != nil {
			failed(l.out.Err)
		}
	})
	return l, nil
}

// A Line is the record of one call. Durations are in milliseconds.
type Line struct {
	Time       time.Time       `json:"time"` // when the call arrived
	Tool       string          `json:"tool"`
	ID         json.RawMessage `json:"id"`      // the id of the host's request
	Outcome    string          `json:"outcome"` // ok, failed, idle, total, aborted or lost
	ExitCode   int             `json:"exitCode"`
	Elapsed    float64         `json:"elapsedMs"`    // from Time until the answer
	Total      float64         `json:"totalMs"`      // the total; 0 means none
	Idle       float64         `json:"idleMs"`       // the idle limit; 0 means none
	LongestGap float64         `json:"longestGapMs"` // longest time without a sign of life
	Beats      uint64          `json:"beats"`        // number of signs of life
	Bytes      int             `json:"bytes"`        // size of the server's answer, or 0
	Error      string          `json:"error,omitempty"`
	Tree       string          `json:"tree,omitempty"` // what the server's processes were doing when a limit fired
}

// Write writes the line of a call that has ended with err, and does not wait for the file. s is the last snapshot of
// the call's execution. The caller sets Time, Tool, ID, Bytes and Tree of the line, and Write sets the other fields.
func (l *Log) Write(line Line, s timeout.Snapshot, err error) {
	if l == nil {
		return
	}
	line.Outcome, line.ExitCode, line.Elapsed = "ok", timeout.ExitCode(err), millis(time.Since(line.Time))
	line.Total, line.Idle = millis(s.Limits.Total), millis(s.Limits.Idle)
	line.LongestGap, line.Beats = millis(s.LongestGap), s.Beats
	outcome, known := toolcall.OutcomeOf(err)
	switch {
	case known:
		line.Outcome, line.Error = outcome.Kind, stopped.Message(err)
	case errors.Is(err, toolcall.ErrResult):
		line.Outcome = "failed"
	case err != nil:
		line.Outcome, line.Error = "lost", err.Error()
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return // not reached: the id is valid JSON
	}
	if !l.out.Offer(append(raw, '\n'), jsonrpc.QueueOf(jsonrpc.MaxMessage)) {
		l.full.Do(func() { l.failed(errors.New("what it is written to takes nothing; lines are lost")) })
	}
}

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// Flush waits until all lines have been written, but no longer than limit. The Log drops the lines that are left, and
// later ones.
func (l *Log) Flush(limit time.Duration) {
	if l != nil {
		l.out.Flush(limit, limit)
	}
}
