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
	"github.com/tooldeadline/tooldeadline/progress"
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
			{"total, abandoned", t.Context(), timeout.Config{Total: 2 * time.Second, Grace: 1}, `{"kind":"total","exitCode":124,"limitMs":2000,"totalMs":2000,"idleMs":0,"leftMs":0,"elapsedMs":2000,"longestGapMs":2000,"beats":1,"abandoned":true}`},
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

// SPEC 7.11: a call that is answered with less than a tenth of its total left, or less than its reserve,
// says so, to the nanosecond.
func TestNearLimit(t *testing.T) {
	failed := errors.New("no such file")
	for _, tc := range []struct {
		name   string
		config timeout.Config
		after  time.Duration
		err    error
		stop   error
		want   string
	}{
		{"a tenth", timeout.Config{Total: 10 * time.Second, Idle: 10 * time.Second}, 9 * time.Second, nil, nil, "null"},
		{"less than a tenth", timeout.Config{Total: 10 * time.Second}, 9*time.Second + 1000, nil, nil,
			`{"kind":"returned","exitCode":0,"limitMs":0,"totalMs":10000,"idleMs":0,"leftMs":999.999,"elapsedMs":9000.001,"longestGapMs":9000.001,"beats":1,"last":"file 3"}`},
		{"an error of the tool's own", timeout.Config{Total: 10 * time.Second, Idle: 9500 * time.Millisecond}, 9400 * time.Millisecond, failed, nil,
			`{"kind":"returned","exitCode":1,"limitMs":0,"totalMs":10000,"idleMs":9500,"leftMs":600,"elapsedMs":9400,"longestGapMs":9400,"beats":1,"last":"file 3"}`},
		{"the reserve", timeout.Config{Total: 10 * time.Second, Reserve: 3 * time.Second}, 7 * time.Second, nil, nil, "null"},
		{"less than the reserve", timeout.Config{Total: 10 * time.Second, Reserve: 3 * time.Second}, 7*time.Second + 1000, nil, nil,
			`{"kind":"returned","exitCode":0,"limitMs":0,"totalMs":10000,"idleMs":0,"leftMs":2999.999,"elapsedMs":7000.001,"longestGapMs":7000.001,"beats":1,"last":"file 3"}`},
		{"a reserve of less than a tenth", timeout.Config{Total: 10 * time.Second, Reserve: time.Second / 2}, 9*time.Second + 1000, nil, nil,
			`{"kind":"returned","exitCode":0,"limitMs":0,"totalMs":10000,"idleMs":0,"leftMs":999.999,"elapsedMs":9000.001,"longestGapMs":9000.001,"beats":1,"last":"file 3"}`},
		{"no total", timeout.Config{Idle: 10 * time.Second}, 9900 * time.Millisecond, nil, nil, "null"},
		{"stopped", timeout.Config{Total: 10 * time.Second}, 10*time.Second + 1, nil, timeout.ErrTotal, "null"},
		{"a tenth of the caller's deadline, without a total", timeout.Config{}, 9 * time.Second, nil, nil, "null"},
		{"less than a tenth of it", timeout.Config{}, 9*time.Second + 1000, nil, nil,
			`{"kind":"returned","exitCode":0,"limitMs":0,"totalMs":10000,"idleMs":0,"leftMs":999.999,"elapsedMs":9000.001,"longestGapMs":9000.001,"beats":1,"last":"file 3"}`},
		{"less than the reserve of it", timeout.Config{Reserve: 3 * time.Second}, 7*time.Second + 1000, nil, nil,
			`{"kind":"returned","exitCode":0,"limitMs":0,"totalMs":10000,"idleMs":0,"leftMs":2999.999,"elapsedMs":7000.001,"longestGapMs":7000.001,"beats":1,"last":"file 3"}`},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			for _, token := range []any{nil, "t"} {
				var near *toolcall.Outcome
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tc.config.Total == 0 && tc.config.Idle == 0 { // only the caller's deadline limits the call
					ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
				}
				defer cancel()
				_, err := toolcall.Do(ctx, &toolcall.Settings{Limits: &tc.config}, toolcall.Call{
					Token: token, Send: func(context.Context, progress.Notification) error { return nil },
					NearLimit: func(o toolcall.Outcome) { near = &o },
				}, func(ctx context.Context) (int, error) {
					heartbeat.BeatWith(ctx, "file 3")
					time.Sleep(tc.after)
					return 0, tc.err
				})
				got, _ := json.Marshal(near)
				if diff := cmp.Diff(tc.want, string(got)); diff != "" || !errors.Is(err, tc.err) && !errors.Is(err, tc.stop) {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}

// SPEC 7.11: a call that was stopped by its idle limit says what was left of its total, where that is little.
func TestLeftOfAStop(t *testing.T) {
	for _, tc := range []struct {
		idle time.Duration
		want string
	}{
		{90 * time.Second, "null"},
		{90*time.Second + time.Millisecond, "9999"},
		{100 * time.Second, "0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: 100 * time.Second, Idle: tc.idle})
			o, _ := toolcall.OutcomeOf(err)
			if got, _ := json.Marshal(o.Left); string(got) != tc.want {
				t.Errorf("idle limit %v: %s, want %s", tc.idle, got, tc.want)
			}
		})
	}
}
