package request_test

import (
	"context"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// The cost of a request beside sending it.
func BenchmarkDo(b *testing.B) {
	for _, bench := range []struct {
		name   string
		limits request.Limits
	}{
		{"no limits", request.Limits{}},
		{"limit", request.Limits{Timeout: time.Minute}},
		{"limit and reset", request.Limits{Timeout: time.Minute, MaxTotal: time.Hour, ResetOnProgress: true}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := request.New(bench.limits, nil)
			b.ReportAllocs()
			for b.Loop() {
				_, err := request.Do(b.Context(), c, request.Call{Method: "tools/call"}, func(context.Context, string) (int, error) { return 0, nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
