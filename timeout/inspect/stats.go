package inspect

import (
	"slices"
	"time"
)

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
	silence := time.Duration(e.LongestGap)
	t.outcomes[slices.Index(outcomes[:], e.Outcome)]++
	t.durations.add(time.Duration(e.Elapsed))
	t.silences.add(silence)
	if e.Abandoned {
		t.abandoned++
	}
	if e.WouldStop != "" {
		t.wouldStop++
	}
	if e.Outcome == succeeded {
		t.succeeded++
		t.succeededSilence = max(t.succeededSilence, silence)
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
	if i, _ := slices.BinarySearch(roundLimits, d); i < len(roundLimits) {
		return roundLimits[i]
	}
	return (d + time.Hour - 1) / time.Hour * time.Hour
}
