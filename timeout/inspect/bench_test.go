package inspect

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// BenchmarkRun measures what the page costs a run. Recording begins with the import, so the case
// without it stops it first.
func BenchmarkRun(b *testing.B) {
	fn := func(context.Context) error { return nil }
	for _, name := range []string{"without the page", "with it"} {
		b.Run(name, func(b *testing.B) {
			theRecorder().stop()
			if name == "with it" {
				r := newRecorder()
				stop := timeout.Watch(timeout.Hooks{Started: r.started, Finished: r.finished})
				defer stop()
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = timeout.Run(context.Background(), fn, timeout.WithName("bench"), timeout.Default())
			}
		})
	}
}

// BenchmarkMemory measures the memory of the page after many runs of 700 tools, each with a detail
// and every fourth with an error (SPEC 14.4). An iteration is a million runs.
func BenchmarkMemory(b *testing.B) {
	theRecorder().stop()
	r := newRecorder()
	defer timeout.Watch(timeout.Hooks{Started: r.started, Finished: r.finished})()
	names := make([]string, 700)
	for i := range names {
		names[i] = fmt.Sprint("tool-", i)
	}
	before := heap()
	for b.Loop() {
		for i := range 1_000_000 {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				heartbeat.BeatWith(ctx, names[i%len(names)]) // as if it were large
				if i%4 == 0 {
					return fmt.Errorf("run %d failed", i)
				}
				return nil
			}, timeout.WithName(names[i%len(names)]), timeout.Default())
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	}
	if len(r.recent(1, func(*ended) bool { return true })) == 0 {
		b.Error("nothing was recorded")
	}
}

// heap returns the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
