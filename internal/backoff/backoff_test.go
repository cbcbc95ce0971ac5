package backoff_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
)

func TestWaits(t *testing.T) {
	const s, forever = time.Second, time.Duration(math.MaxInt64)
	for name, tc := range map[string]struct {
		waits backoff.Waits
		want  []time.Duration
	}{
		"doubled":            {backoff.Waits{First: s, Max: 5 * s, Factor: 2}, []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s}},
		"a fifth longer":     {backoff.Waits{First: s, Max: 2 * s, Factor: 1.2}, []time.Duration{s, 1200 * time.Millisecond, 1440 * time.Millisecond}},
		"all equal":          {backoff.Waits{First: s, Max: 5 * s, Factor: 0.5}, []time.Duration{s, s, s}},
		"no longer than one": {backoff.Waits{First: 3 * s, Max: s, Factor: 2}, []time.Duration{3 * s, 3 * s}},
		"no spin":            {backoff.Waits{First: 1, Max: 60, Factor: 2}, []time.Duration{time.Millisecond, time.Millisecond}}, // SPEC 2.13
		"as long as can be":  {backoff.Waits{First: forever / 2, Max: forever, Factor: 4}, []time.Duration{forever / 2, forever, forever}},
	} {
		for range 2 {
			var got []time.Duration
			for range tc.want {
				got = append(got, tc.waits.Next())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			tc.waits.Reset()
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if !backoff.Sleep(ctx, time.Second-1) || time.Since(begun) != time.Second-1 {
			t.Errorf("before the end: %v", time.Since(begun))
		}
		if backoff.Sleep(ctx, time.Hour) || time.Since(begun) != time.Second {
			t.Errorf("at the end: %v", time.Since(begun))
		}
	})
}
