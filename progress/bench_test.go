package progress_test

import (
	"context"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// BenchmarkReport reports from every core to a listening client, and compares that with the
// heartbeat alone.
func BenchmarkReport(b *testing.B) {
	for _, bc := range []struct {
		name string
		beat func(ctx context.Context, i int)
	}{
		{"BeatWith", func(ctx context.Context, i int) {
			heartbeat.BeatWith(ctx, progress.Update{Progress: float64(i), Total: 100, Message: "main.go"})
		}},
		{"Report", func(ctx context.Context, i int) {
			progress.Report(ctx, progress.Update{Progress: float64(i), Total: 100, Message: "main.go"})
		}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			stop := func() {}
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				stop = progress.Start(ctx, "token", time.Millisecond, func(context.Context, progress.Notification) error { return nil })
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						bc.beat(ctx, i)
					}
				})
				return nil
			}, timeout.Config{Idle: time.Minute})
			stop()
		})
	}
}
