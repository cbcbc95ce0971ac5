package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// An ended records an execution that has ended. It holds errors and details as text, because the values may be large
// and should not be retained.
type ended struct {
	timeout.Snapshot
	outcome   string
	abandoned bool
	err       string
	detail    string
	stack     string
	marks     []mark

	wouldStop   string // the limit that would have stopped it if limits were enforced, or ""
	wouldStopAt millis
}

func newEnded(s timeout.Snapshot) ended {
	e := ended{outcome: outcomeOf(&s), detail: detailText(s.Detail), stack: string(s.Stack[:min(len(s.Stack), maxStack)])}
	if s.Err != nil {
		e.err = strings.Clone(errorText(s.Err)) // a copy, because the string may be part of a larger one
		e.abandoned = s.State == timeout.StateAbandoned
	}
	if s.Observed != nil {
		e.wouldStop, e.wouldStopAt = limitOf(s.Observed), millis(s.Observed.Elapsed)
	}
	s.Err, s.Detail, s.Stack, s.Observed = nil, nil, nil, nil
	s.Leftovers = strings.Clone(strings.TrimSpace(cut(s.Leftovers, maxLeftovers)))
	e.Snapshot = s
	return e
}

// toolStats holds the figures of one tool since the program began.
type toolStats struct {
	name      string
	outcomes  [len(outcomes)]uint64
	abandoned uint64
	wouldStop uint64 // runs that a limit would have stopped if it were enforced
	durations histogram
	silences  histogram
	// The number of runs that succeeded, and their longest silence.
	succeeded        uint64
	succeededSilence time.Duration
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
		t.succeeded++
		t.succeededSilence = max(t.succeededSilence, e.LongestGap)
	}
}

// enoughRuns is the number of successful runs from which an idle limit is suggested.
const enoughRuns = 20

// suggested returns three times the longest silence of a successful run, rounded up, as an idle limit (SPEC 14.1), or
// 0 if fewer than enoughRuns runs have succeeded.
func (t *toolStats) suggested() time.Duration {
	if t.succeeded < enoughRuns {
		return 0
	}
	return roundUp(3 * t.succeededSilence)
}

var roundLimits = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
}

// roundUp returns the smallest element of roundLimits that is at least d or, for a longer d, the smallest number of
// whole hours.
func roundUp(d time.Duration) time.Duration {
	for _, r := range roundLimits {
		if r >= d {
			return r
		}
	}
	return (d + time.Hour - 1) / time.Hour * time.Hour
}
