package temporalworker_test

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

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
// limit is shorter than the HeartbeatTimeout, for which an example cannot wait.
func environment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(2 * time.Minute) // not 3 s, of a busy machine
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{temporalworker.Interceptor(temporalworker.Options{
			Policy: &policy.Policy{Default: &timeout.Config{Idle: 100 * time.Millisecond}},
		})},
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
