package temporalworker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// The SDK's own environments: its code, and a service that it fakes.

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}

func workerOptions(opts temporalworker.Options) worker.Options {
	return worker.Options{Interceptors: []interceptor.WorkerInterceptor{temporalworker.Interceptor(opts)}}
}

func activities(opts temporalworker.Options) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	return suite.NewTestActivityEnvironment().SetWorkerOptions(workerOptions(opts))
}

// inBubble runs a test in simulated time: the SDK's environments run there unchanged.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { t.Helper(); synctest.Test(t, test) })
}

func TestActivityEnvironment(t *testing.T) {
	limits := timeout.Config{Idle: 2500 * time.Millisecond, Grace: time.Minute}
	patient := timeout.Config{Idle: time.Minute}
	hang := func(ctx context.Context) (int, error) {
		activity.RecordHeartbeat(ctx, "half")
		<-ctx.Done()
		return 7, ctx.Err()
	}
	crash := func(context.Context) error { panic("boom") }
	pending := func(context.Context) error { return activity.ErrResultPending }

	inBubble(t, "stuck", func(t *testing.T) {
		env := activities(limited(limits))
		env.RegisterActivity(hang)
		_, err := env.ExecuteActivity(hang)
		o, ok := temporalworker.OutcomeOf(err)
		var partial int
		if perr := o.Partial(&partial); !ok || o.Kind != "idle" || o.Last != `"half"` || partial != 7 || perr != nil {
			t.Errorf("%v: %+v, %d, %v", err, o, partial, perr)
		}
		if !strings.Contains(o.Stack, "TestActivityEnvironment") || len(o.Stack) > 2<<10 {
			t.Errorf("stack %s", o.Stack)
		}
	})
	inBubble(t, "panics", func(t *testing.T) {
		env := activities(limited(patient))
		env.RegisterActivity(crash)
		_, err := env.ExecuteActivity(crash)
		var p *temporal.PanicError
		if !errors.As(err, &p) || !strings.HasPrefix(p.Error(), "boom\n") || !strings.Contains(p.Error(), "TestActivityEnvironment") {
			t.Errorf("%T %v", err, err)
		}
	})
	inBubble(t, "completes later", func(t *testing.T) {
		env := activities(limited(patient))
		env.RegisterActivity(pending)
		if _, err := env.ExecuteActivity(pending); err != activity.ErrResultPending {
			t.Error(err)
		}
	})
	inBubble(t, "local", func(t *testing.T) {
		env := activities(limited(limits))
		_, err := env.ExecuteLocalActivity(hang)
		if o, ok := temporalworker.OutcomeOf(err); !ok || o.Kind != "idle" {
			t.Errorf("%v: %+v", err, o)
		}
	})
}

// A workflow retries an activity that stalls; each attempt goes on from the details of the one
// before, whichever way they were given; and the workflow reads the outcome of the last.
func TestWorkflowEnvironment(t *testing.T) {
	synctest.Test(t, testWorkflowEnvironment)
}

func testWorkflowEnvironment(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Hour)
	env.SetWorkerOptions(workerOptions(limited(timeout.Config{Idle: 2500 * time.Millisecond})))
	var mu sync.Mutex
	var from []int
	note := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		from = append(from, n)
	}
	resume := func(ctx context.Context) int {
		n := 0
		if err := activity.GetHeartbeatDetails(ctx, &n); err != nil && activity.GetInfo(ctx).Attempt > 1 {
			note(-1)
		}
		note(n)
		return n
	}
	records := func(ctx context.Context) (int, error) {
		n := resume(ctx)
		for range 3 {
			n++
			activity.RecordHeartbeat(ctx, n)
		}
		heartbeat.BeatWith(ctx, "of a library")
		<-ctx.Done()
		return n, ctx.Err()
	}
	beats := func(ctx context.Context) (int, error) {
		n := resume(ctx)
		for range 3 {
			n++
			heartbeat.BeatWith(ctx, n)
		}
		<-ctx.Done()
		return n, ctx.Err()
	}
	env.RegisterActivityWithOptions(records, activity.RegisterOptions{Name: "records"})
	env.RegisterActivityWithOptions(beats, activity.RegisterOptions{Name: "beats"})
	type result struct {
		Kind    string
		Partial int
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) (all []result, _ error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Minute,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3, InitialInterval: time.Millisecond}})
		for _, name := range []string{"records", "beats"} {
			err := workflow.ExecuteActivity(ctx, name).Get(ctx, nil)
			o, _ := temporalworker.OutcomeOf(err)
			r := result{Kind: o.Kind}
			if err := o.Partial(&r.Partial); err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		return all, nil
	})
	var got []result
	if err := env.GetWorkflowResult(&got); err != nil {
		t.Fatal(err)
	}
	if want := []result{{"idle", 9}, {"idle", 9}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []int{0, 3, 6, 0, 3, 6}; !slices.Equal(from, want) {
		t.Errorf("attempts went on from %v, want %v", from, want)
	}
}

// A silent activity is kept by heartbeats that the SDK sends, and the lease ends where the
// activity is stopped: the service's own timeout is not reached.
func TestSilentActivityIsKept(t *testing.T) {
	synctest.Test(t, testSilentActivityIsKept)
}

func testSilentActivityIsKept(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Hour)
	env.SetWorkerOptions(workerOptions(limited(timeout.Config{Idle: time.Minute})))
	var heartbeats int
	var mu sync.Mutex
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		mu.Lock()
		defer mu.Unlock()
		heartbeats++
	})
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		time.Sleep(8 * time.Second)
		return ctx.Err()
	}, activity.RegisterOptions{Name: "silent"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 5 * time.Second,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
		return workflow.ExecuteActivity(ctx, "silent").Get(ctx, nil)
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if heartbeats == 0 {
		t.Error("no heartbeat")
	}
}
