package temporalworker_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// index is an activity. It indexes one file, and hangs at the second.
func index(ctx context.Context) ([]string, error) {
	var done []string
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &done); err != nil {
			return nil, err
		}
		fmt.Println("goes on from", done)
	}
	done = append(done, fmt.Sprint("file", len(done)+1))
	activity.RecordHeartbeat(ctx, done)
	<-ctx.Done()
	return done, ctx.Err()
}

// environment is a worker of the SDK's test suite: worker.New takes the same options. Its idle
// limit is that of the examples, which cannot wait for a HeartbeatTimeout.
func environment(opts ...temporalworker.Option) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(2 * time.Minute) // not 3 s, of a busy machine
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{temporalworker.Interceptor(append(opts, temporalworker.WithOptions(timeout.Config{Idle: 100 * time.Millisecond}))...)},
	})
	env.RegisterActivity(index)
	return env
}

// twice is a workflow that gives the activity two attempts.
func twice(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 2},
	})
	var done []string
	err := workflow.ExecuteActivity(ctx, index).Get(ctx, &done)
	if o, ok := temporalworker.OutcomeOf(err); ok {
		fmt.Println(o.Kind, o.Limit, "ms, last:", o.Last)
		if err := o.Partial(&done); err != nil {
			return err
		}
		fmt.Println("has", done)
	}
	return nil
}

// An activity that hangs is stopped at the idle limit, and its next attempt goes on from what it
// has recorded.
func ExampleInterceptor() {
	environment().ExecuteWorkflow(twice)
	// Output:
	// goes on from [file1]
	// idle 100 ms, last: ["file1","file2"]
	// has [file1 file2]
}

// A workflow goes on with what a stopped activity had by then.
func ExampleOutcomeOf() {
	environment().ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Minute,
			RetryPolicy: &temporal.RetryPolicy{NonRetryableErrorTypes: []string{temporalworker.TypeIdle}},
		})
		err := workflow.ExecuteActivity(ctx, index).Get(ctx, nil)
		o, ok := temporalworker.OutcomeOf(err)
		fmt.Println(ok, o.Kind, o.ExitCode)
		return nil
	})
	// Output: true idle 124
}

func ExampleOutcome_Partial() {
	environment().ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Minute,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		err := workflow.ExecuteActivity(ctx, index).Get(ctx, nil)
		if o, ok := temporalworker.OutcomeOf(err); ok {
			var done []string
			fmt.Println(o.Partial(&done), done)
		}
		return nil
	})
	// Output: <nil> [file1]
}

// The idle limit of an activity may be shorter or longer than its HeartbeatTimeout, within which
// the service finds a dead worker.
func ExampleWithPolicy() {
	env := environment(temporalworker.WithPolicy(&policy.Policy{Tools: map[string]policy.Tool{
		"index": {Limits: &timeout.Config{Idle: 700 * time.Millisecond}},
	}}))
	env.ExecuteWorkflow(twice)
	// Output:
	// goes on from [file1]
	// idle 700 ms, last: ["file1","file2"]
	// has [file1 file2]
}

// One attempt is enough.
func ExampleWithNonRetryable() {
	environment(temporalworker.WithNonRetryable(timeout.KindIdle, timeout.KindTotal)).ExecuteWorkflow(twice)
	// Output:
	// idle 100 ms, last: ["file1"]
	// has [file1]
}

// A client whose details are encrypted, and encoded in a way of its own.
func ExampleWithDataConverter() {
	parent := converter.NewCompositeDataConverter(converter.NewNilPayloadConverter(), converter.NewJSONPayloadConverter())
	encrypted := converter.NewCodecDataConverter(parent, converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	env := environment(temporalworker.WithDataConverter(parent))
	env.SetDataConverter(encrypted)
	env.ExecuteWorkflow(twice)
	// Output:
	// goes on from [file1]
	// idle 100 ms, last: ["file1","file2"]
	// has [file1 file2]
}

func ExampleWithLogger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.LevelKey, slog.MessageKey, "activity", "detail":
			return a
		}
		return slog.Attr{}
	}}))
	env := environment(temporalworker.WithLogger(logger))
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		heartbeat.BeatWith(ctx, make(chan int))
		return fmt.Errorf("disk full")
	}, activity.RegisterOptions{Name: "odd"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
		return workflow.ExecuteActivity(ctx, "odd").Get(ctx, nil)
	})
	// Output: level=WARN msg="the detail of a heartbeat cannot be sent" activity=odd detail="chan int"
}
