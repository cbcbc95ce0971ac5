package inspect

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The outcomes of an execution, as the page shows them.
const (
	succeeded = "ok"
	failed    = "error"
	idle      = "idle timeout"
	total     = "total timeout"
	aborted   = "aborted"
	panicked  = "panic"

	// Of commands that were stopped for what they did, as package procgroup calls them.
	input    = "waiting for input"
	terminal = "stopped by the terminal"
	memory   = "out of memory"
	output   = "too much output"
)

var outcomes = [...]string{succeeded, failed, idle, total, aborted, panicked, input, terminal, memory, output}

// outcomeOf looks at the error itself, and not into its tree: what a function returns, or panics
// with, may be the timeout of another execution.
func outcomeOf(s *timeout.Snapshot) string {
	if s.Err == nil {
		return succeeded
	}
	if s.Returned {
		return failed
	}
	switch err := s.Err.(type) {
	case *timeout.Error:
		switch err.Kind {
		case timeout.KindIdle:
			return idle
		case timeout.KindTotal:
			return total
		case timeout.KindAborted:
			return aborted
		}
	case *timeout.PanicError:
		return panicked
	case command.Stop:
		if reason := err.CommandStop(); slices.Contains(outcomes[:], reason) {
			return reason
		}
	}
	return failed
}

// toolStats holds the figures of one tool since the program began.
type toolStats struct {
	name      string
	outcomes  [len(outcomes)]uint64
	abandoned uint64
	wouldStop uint64 // runs that a limit would have stopped, if it were enforced
	durations histogram
	silences  histogram
	// The runs that succeeded: their number and their longest silence.
	good        uint64
	goodSilence time.Duration
}

func (t *toolStats) add(e *ended) {
	t.outcomes[slices.Index(outcomes[:], e.outcome)]++
	t.durations.add(e.Elapsed)
	t.silences.add(e.LongestGap)
	if e.abandoned {
		t.abandoned++
	}
	if e.wouldStop != "" {
		t.wouldStop++
	}
	if e.outcome == succeeded {
		t.good++
		t.goodSilence = max(t.goodSilence, e.LongestGap)
	}
}

// enoughRuns is how many runs must succeed before they suggest a limit.
const enoughRuns = 20

// suggested returns the idle limit that the runs suggest (SPEC 14.1), or 0 if too few have
// succeeded.
func (t *toolStats) suggested() time.Duration {
	if t.good < enoughRuns {
		return 0
	}
	return roundUp(3 * t.goodSilence)
}

var roundLimits = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
}

// roundUp returns the smallest round value that is at least d. Above half an hour, whole hours are
// round.
func roundUp(d time.Duration) time.Duration {
	for _, r := range roundLimits {
		if r >= d {
			return r
		}
	}
	return (d + time.Hour - 1) / time.Hour * time.Hour
}
