package temporalworker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// What the interceptor adds to an activity that does nothing, in the SDK's environment, which
// does without a network. The two take turns.
func BenchmarkInterceptor(b *testing.B) {
	noop := func(context.Context) error { return nil }
	var envs [2]*testsuite.TestActivityEnvironment
	for i, options := range []worker.Options{{}, workerOptions(defaults)} {
		envs[i] = activities(defaults).SetWorkerOptions(options)
		envs[i].RegisterActivity(noop)
	}
	var took [2][]time.Duration
	for b.Loop() {
		for i, env := range envs {
			begun := time.Now()
			if _, err := env.ExecuteActivity(noop); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	var of [2]float64
	for i := range took {
		slices.Sort(took[i])
		of[i] = float64(took[i][len(took[i])/2].Nanoseconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(of[0], "bare-ns")
	b.ReportMetric(of[1], "guarded-ns")
	b.ReportMetric(of[1]-of[0], "more-ns")
}
