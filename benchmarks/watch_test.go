package benchmarks

import (
	"context"
	"testing"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// BenchmarkWatch is BenchmarkRun of the library alone, with nobody who watches, with one who
// only wants the list, and with one who counts what starts and measures what ends.
func BenchmarkWatch(b *testing.B) {
	var started int
	var longest int64
	measure := timeout.Hooks{
		Started: func(context.Context, timeout.Snapshot) { started++ },
		Finished: func(_ context.Context, s timeout.Snapshot) {
			longest = max(longest, int64(s.LongestGap))
		},
	}
	for _, c := range []struct {
		name  string
		hooks []timeout.Hooks
	}{
		{"nobody", nil},
		{"list", []timeout.Hooks{{}}},
		{"hooks", []timeout.Hooks{measure}},
	} {
		b.Run("who="+c.name, func(b *testing.B) {
			for _, h := range c.hooks {
				b.Cleanup(timeout.Watch(h))
			}
			runs(b, totalIdle, caller, []contender{{"tooldeadline", library(totalIdle)}})
		})
	}
}
