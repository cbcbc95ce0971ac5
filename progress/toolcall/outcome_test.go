package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.7: the exit code, the kind and the limits.
func TestOutcomeOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, abort := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Microsecond, abort)
		for _, tc := range []struct {
			name   string
			ctx    context.Context
			config timeout.Config
			want   string
		}{
			{"abort", caller, timeout.Config{}, `{"kind":"aborted","exitCode":130,"limitMs":0,"totalMs":0,"idleMs":0,"elapsedMs":0.5,"longestGapMs":0.5,"beats":1}`},
			{"idle", t.Context(), timeout.Config{Total: time.Hour, Idle: 90250 * time.Millisecond}, `{"kind":"idle","exitCode":124,"limitMs":90250,"totalMs":3600000,"idleMs":90250,"elapsedMs":90250,"longestGapMs":90250,"beats":1}`},
			{"total, abandoned", t.Context(), timeout.Config{Total: 2 * time.Second, Grace: 1}, `{"kind":"total","exitCode":124,"limitMs":2000,"totalMs":2000,"idleMs":0,"elapsedMs":2000,"longestGapMs":2000,"beats":1,"abandoned":true}`},
		} {
			err := timeout.Run(tc.ctx, func(ctx context.Context) error {
				heartbeat.Beat(ctx)
				<-ctx.Done()
				time.Sleep(2 * time.Nanosecond)
				return nil
			}, tc.config)
			o, ok := toolcall.OutcomeOf(fmt.Errorf("wrapped: %w", err))
			got, _ := json.Marshal(o)
			if diff := cmp.Diff(tc.want, string(got)); !ok || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.name, ok, diff)
			}
			time.Sleep(time.Second) // the abandoned one returns
		}
	})
	for _, err := range []error{nil, errors.New("no such file"), context.DeadlineExceeded} {
		if o, ok := toolcall.OutcomeOf(err); ok || o != (toolcall.Outcome{}) {
			t.Errorf("%v is %v", err, o)
		}
	}
}
