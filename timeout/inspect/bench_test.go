package inspect

import (
	"context"
	"testing"

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
