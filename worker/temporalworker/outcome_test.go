package temporalworker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// overTheWire returns the error as a workflow gets it.
func overTheWire(err error) error {
	c := temporal.GetDefaultFailureConverter()
	return c.FailureToError(c.ErrorToFailure(err))
}

var errDisk = errors.New("disk full")

// SPEC 13.1: an outcome that the retry policy understands, and the partial result with it.
func TestLimitOutcomes(t *testing.T) {
	limits := timeout.Config{Idle: time.Second, Total: time.Minute, Grace: time.Second}
	for _, tt := range []struct {
		name    string
		work    fn
		kind    string
		typ     string
		message string
		partial string
		cause   error
	}{
		{name: "idle", work: stuck("half", errDisk), kind: "idle", typ: temporalworker.TypeIdle, partial: "half", cause: errDisk,
			message: "No progress for 1s (idle timeout). Tool should call heartbeat() during long work."},
		{name: "idle, nothing returned", work: stuck(nil, context.Canceled), kind: "idle", typ: temporalworker.TypeIdle,
			message: "No progress for 1s (idle timeout). Tool should call heartbeat() during long work."},
		{name: "idle, and no error", work: stuck("all", nil), kind: "idle", typ: temporalworker.TypeIdle, partial: "all",
			message: "No progress for 1s (idle timeout). Tool should call heartbeat() during long work."},
		{name: "where it was", work: func(ctx context.Context, record record) (any, error) {
			record(ctx, 37)
			<-ctx.Done()
			return nil, ctx.Err()
		}, kind: "idle", typ: temporalworker.TypeIdle,
			message: "No progress for 1s (idle timeout). Tool should call heartbeat() during long work."},
		{name: "total", work: beats("half"), kind: "total", typ: temporalworker.TypeTotal, partial: "half", message: "Tool exceeded wall-clock limit of 60s."},
		{name: "of an execution within", work: func(ctx context.Context, _ record) (any, error) {
			return "half", timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Idle: time.Millisecond})
		}, kind: "idle", typ: temporalworker.TypeIdle, partial: "half",
			message: "No progress for 0.001s (idle timeout). Tool should call heartbeat() during long work."},
		{name: "by hand", work: func(ctx context.Context, _ record) (any, error) {
			timeout.FromContext(ctx).Abort(errDisk)
			return "half", ctx.Err()
		}, kind: "aborted", typ: temporalworker.TypeAborted, partial: "half", message: "Tool was aborted: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Hour}}
				v, err := a.run(tt.work, limited(limits))
				if v != nil {
					t.Errorf("returned %v", v)
				}
				var app *temporal.ApplicationError
				if !errors.As(err, &app) || app.Type() != tt.typ || app.NonRetryable() ||
					!strings.HasPrefix(app.Message(), tt.message) || strings.Contains(app.Message(), "37") {
					t.Fatalf("got %v, %T", err, err)
				}
				if tt.cause != nil && !errors.Is(err, tt.cause) {
					t.Errorf("%v has lost its cause", err)
				}
				o, ok := temporalworker.OutcomeOf(fmt.Errorf("workflow: %w", overTheWire(err)))
				if !ok || o.Kind != tt.kind || o.Elapsed == 0 && tt.kind != "aborted" || o.Abandoned {
					t.Errorf("outcome %+v, %v", o, ok)
				}
				var partial string
				if err := o.Partial(&partial); partial != tt.partial || tt.partial != "" && err != nil || tt.partial == "" && err != temporal.ErrNoData {
					t.Errorf("partial result %q, %v", partial, err)
				}
				var wrong int
				if err := o.Partial(&wrong); err == nil {
					t.Error("a text fits into a number")
				}
			})
		})
	}
}

func stuck(v any, err error) fn {
	return func(ctx context.Context, _ record) (any, error) {
		<-ctx.Done()
		return v, err
	}
}

func beats(v any) fn {
	return func(ctx context.Context, _ record) (any, error) {
		for ctx.Err() == nil {
			heartbeat.Beat(ctx)
			time.Sleep(time.Second / 2)
		}
		return v, ctx.Err()
	}
}

// SPEC 13.1: an end by the service or the worker is reported as they expect it.
func TestEnds(t *testing.T) {
	notFound := serviceerror.NewNotFound("no such attempt")
	cancelled := temporal.NewCanceledError()
	own := temporal.NewCanceledError(map[string]string{"kind": "tidy"})
	nonRetryable := temporal.NewNonRetryableApplicationError("bad input", "Bad", nil)
	for _, tt := range []struct {
		name  string
		cause error
		work  fn
		value any
		err   error // by ==; nil where outcome
		// outcome is that of a CanceledError.
		outcome   bool
		partial   string
		abandoned bool
	}{
		{name: "cancelled", cause: cancelled, work: stuck("half", context.Canceled), outcome: true, partial: "half"},
		{name: "cancelled, another error", cause: cancelled, work: stuck("half", errDisk), outcome: true, partial: "half"},
		{name: "cancelled, but done", cause: cancelled, work: stuck("all", nil), value: "all"},
		{name: "cancelled, deaf", cause: cancelled, work: func(context.Context, record) (any, error) { time.Sleep(time.Hour); return "all", nil },
			outcome: true, abandoned: true},
		{name: "paused", cause: activity.ErrActivityPaused, work: stuck("half", context.Canceled), err: activity.ErrActivityPaused},
		{name: "reset", cause: activity.ErrActivityReset, work: stuck("half", context.Canceled), err: activity.ErrActivityReset},
		{name: "the worker stops", cause: worker.ErrWorkerShutdown, work: stuck("half", context.Canceled), err: worker.ErrWorkerShutdown},
		{name: "the worker stops, but it is done", cause: worker.ErrWorkerShutdown, work: stuck("all", nil), value: "all"},
		{name: "the worker stops, another error", cause: worker.ErrWorkerShutdown, work: stuck(nil, nonRetryable), err: worker.ErrWorkerShutdown},
		{name: "paused, and takes it for a cancellation", cause: activity.ErrActivityPaused, work: stuck("half", cancelled), err: activity.ErrActivityPaused},
		{name: "the worker stops, and it takes that for a cancellation", cause: worker.ErrWorkerShutdown, work: stuck("half", cancelled), err: worker.ErrWorkerShutdown},
		{name: "the worker stops, somebody else goes on", cause: worker.ErrWorkerShutdown, work: stuck(nil, activity.ErrResultPending), err: activity.ErrResultPending},
		{name: "cancelled, somebody else goes on", cause: cancelled, work: stuck(nil, activity.ErrResultPending), err: activity.ErrResultPending},
		{name: "cancelled, and answers that itself", cause: cancelled, work: stuck("half", own), err: own},
		{name: "given up", cause: notFound, work: stuck("half", context.Canceled), err: notFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Minute}, Context: func(ctx context.Context) context.Context {
					ctx, cancel := context.WithCancelCause(ctx)
					time.AfterFunc(time.Second, func() { cancel(tt.cause) })
					return ctx
				}}
				v, err := a.run(tt.work, limited(timeout.Config{Grace: time.Second}))
				if v != tt.value {
					t.Errorf("value %v, want %v", v, tt.value)
				}
				if took := time.Since(a.start); tt.abandoned != (took == 2*time.Second) || took > 2*time.Second {
					t.Errorf("took %v", took)
				}
				if !tt.outcome {
					if err != tt.err {
						t.Errorf("got %v, want %v", err, tt.err)
					}
					if o, ok := temporalworker.OutcomeOf(overTheWire(err)); ok {
						t.Errorf("outcome %+v", o)
					}
					return
				}
				o, ok := temporalworker.OutcomeOf(overTheWire(err))
				var partial string
				perr := o.Partial(&partial)
				if _, is := err.(*temporal.CanceledError); !is || !ok || o.Kind != "aborted" || partial != tt.partial || o.Abandoned != tt.abandoned {
					t.Errorf("%T %v: outcome %+v, partial result %q, %v", err, err, o, partial, perr)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// The first of two ends is the outcome: a limit, though the worker stops in the grace. And about
// an activity that the service or the worker has ended nothing more is sent.
func TestEndsInTheGrace(t *testing.T) {
	for _, tt := range []struct {
		idle time.Duration
		want string
	}{{time.Second, "idle"}, {2 * time.Second, ""}} {
		bubble(t, func(t *testing.T) {
			a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Minute}, Context: func(ctx context.Context) context.Context {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(1500*time.Millisecond, func() { cancel(worker.ErrWorkerShutdown) })
				return ctx
			}}
			_, err := a.run(func(ctx context.Context, _ record) (any, error) {
				heartbeat.BeatWith(ctx, "half")
				time.Sleep(1700 * time.Millisecond)
				return nil, ctx.Err()
			}, limited(timeout.Config{Idle: tt.idle}))
			if o, _ := temporalworker.OutcomeOf(err); o.Kind != tt.want || tt.want == "" && err != worker.ErrWorkerShutdown {
				t.Errorf("got %v", err)
			}
			if all := a.heartbeats(); len(all) != 0 {
				t.Errorf("sent %v", all)
			}
		})
	}
}

// An activity that was not even called, because the worker stops or the like, is not done.
func TestNeverStarted(t *testing.T) {
	for _, cause := range []error{worker.ErrWorkerShutdown, activity.ErrActivityPaused, temporal.NewCanceledError()} {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Minute}, Context: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			return ctx
		}}
		v, err := a.run(func(context.Context, record) (any, error) {
			t.Error("it was called")
			return nil, nil
		}, defaults)
		_, cancelled := err.(*temporal.CanceledError)
		if _, want := cause.(*temporal.CanceledError); v != nil || !cancelled && err != cause || cancelled != want {
			t.Errorf("%v: returned %v, %v", cause, v, err)
		}
	}
}

// After a total that is that of the ScheduleToCloseTimeout there is no time for another attempt.
func TestLastAttempt(t *testing.T) {
	const hour = time.Hour
	for _, tt := range []struct {
		name  string
		info  activity.Info
		since time.Duration // the activity was scheduled
		left  time.Duration // to the deadline
		total time.Duration // of a policy
		work  fn
		final bool
	}{
		{"ScheduleToCloseTimeout", activity.Info{ScheduleToCloseTimeout: hour}, 0, hour, 0, stuck("half", nil), true},
		{"a short one", activity.Info{ScheduleToCloseTimeout: 3 * time.Second}, 0, 3 * time.Second, 0, stuck("half", nil), true},
		{"the second attempt", activity.Info{ScheduleToCloseTimeout: hour}, 50 * time.Minute, 10 * time.Minute, 0, stuck("half", nil), true},
		{"deaf", activity.Info{ScheduleToCloseTimeout: hour}, 0, hour, 0,
			func(context.Context, record) (any, error) { time.Sleep(2 * hour); return nil, nil }, true},
		{"StartToCloseTimeout", activity.Info{}, 0, hour, 0, stuck("half", nil), false},
		{"StartToCloseTimeout is shorter", activity.Info{ScheduleToCloseTimeout: 2 * hour}, 0, hour, 0, stuck("half", nil), false},
		{"a policy's total is shorter", activity.Info{ScheduleToCloseTimeout: hour}, 0, hour, hour / 2, stuck("half", nil), false},
		{"a policy's total leaves a little", activity.Info{ScheduleToCloseTimeout: hour}, 0, hour, 58 * time.Minute, stuck("half", nil), false},
		{"a policy's total leaves little of a short one", activity.Info{ScheduleToCloseTimeout: 20 * time.Second}, 0, 20 * time.Second,
			15 * time.Second, stuck("half", nil), false},
		{"idle", activity.Info{ScheduleToCloseTimeout: hour, HeartbeatTimeout: time.Minute}, 0, hour, 0, stuck("half", nil), false},
		{"idle, with nothing left", activity.Info{ScheduleToCloseTimeout: time.Minute, HeartbeatTimeout: 53500 * time.Millisecond}, 0, time.Minute, 0, stuck("half", nil), false},
		{"local", activity.Info{ScheduleToCloseTimeout: hour, IsLocalActivity: true}, 0, hour, 0, stuck("half", nil), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: tt.info, Left: tt.left}
				a.Info.ScheduledTime = time.Now().Add(-tt.since)
				_, err := a.run(tt.work, limited(timeout.Config{Total: tt.total}))
				var app *temporal.ApplicationError
				if !errors.As(err, &app) || app.NonRetryable() != tt.final {
					t.Errorf("%v, not retried: %v", err, !tt.final)
				}
				time.Sleep(2 * hour)
			})
		})
	}
}

// An activity that returns in time is not touched. activity.ErrResultPending is compared with ==.
func TestOwnResults(t *testing.T) {
	for _, want := range []error{nil, errDisk, activity.ErrResultPending, temporal.NewNonRetryableApplicationError("bad input", "Bad", nil),
		temporal.NewApplicationError("no type", ""), temporal.NewCanceledError(), context.Canceled, context.DeadlineExceeded} {
		a := &attempt{Info: activity.Info{HeartbeatTimeout: time.Minute}, Left: time.Minute}
		if v, err := a.run(func(context.Context, record) (any, error) { return 7, want }, defaults); v != 7 || err != want {
			t.Errorf("got %v, %v, want %v", v, err, want)
		}
		if _, ok := temporalworker.OutcomeOf(overTheWire(want)); ok {
			t.Errorf("%v has an outcome", want)
		}
	}
}

// A panic reaches the SDK, on its own goroutine, with the stack of the activity.
func TestPanic(t *testing.T) {
	for _, value := range []any{"boom", errDisk} {
		var got any
		func() {
			defer func() { got = recover() }()
			_, _ = new(attempt).run(func(context.Context, record) (any, error) { panicsHere(value); return nil, nil }, defaults)
		}()
		text := fmt.Sprint(got)
		if !strings.HasPrefix(text, fmt.Sprint(value)+"\n") || !strings.Contains(text, "panicsHere") {
			t.Errorf("got %s", text)
		}
		if err, ok := got.(error); value == errDisk && (!ok || !errors.Is(err, errDisk)) {
			t.Errorf("%v is not the activity's", got)
		}
	}
}

//go:noinline
func panicsHere(v any) { panic(v) }

// What would make the service drop everything about a failure is dropped here.
func TestLargePartialResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, v := range []any{strings.Repeat("x", 1<<20), make(chan int)} {
			var log bytes.Buffer
			a := &attempt{Left: time.Second}
			_, err := a.run(stuck(v, nil), temporalworker.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			o, ok := temporalworker.OutcomeOf(overTheWire(err))
			if !ok || o.Kind != "total" || o.Partial(new(any)) != temporal.ErrNoData || !strings.Contains(log.String(), "partial result") ||
				!strings.Contains(log.String(), "tool timed out") {
				t.Errorf("%+v, %v; %s", o, err, &log)
			}
		}
	})
}

// The service keeps no details of a large failure between attempts. The type says enough.
func TestOutcomeWithoutDetails(t *testing.T) {
	err := overTheWire(temporal.NewApplicationError("No progress for 1s", temporalworker.TypeIdle))
	o, ok := temporalworker.OutcomeOf(err)
	if !ok || o.Kind != "idle" || o.Partial(new(any)) != temporal.ErrNoData {
		t.Errorf("%+v, %v", o, ok)
	}
	if err := (temporalworker.Outcome{}).Partial(new(any)); err != temporal.ErrNoData {
		t.Error(err)
	}
}
