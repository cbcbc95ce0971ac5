package interop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// slack is what is allowed on top of what is promised.
const slack = 30 * time.Second

// These make the test binary a worker that another process kills.
const (
	addressEnv   = "INTEROP_ADDRESS"
	namespaceEnv = "INTEROP_NAMESPACE"
	queueEnv     = "INTEROP_QUEUE"
)

// Where the server is: see server_test.go and external_test.go.
var address, namespace string

var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

func TestMain(m *testing.M) {
	if address := os.Getenv(addressEnv); address != "" {
		doomed(address)
		return
	}
	address, namespace = serve()
	code := m.Run()
	for _, c := range clients {
		c.Close()
	}
	os.Exit(code) // a server of ours is in memory
}

var clients []client.Client

// connect returns a new client, as another process would have.
func connect(t testing.TB) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Namespace: namespace, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	clients = append(clients, c)
	return c
}

// within returns a policy with these limits.
func within(c timeout.Config) *policy.Policy { return &policy.Policy{Default: &c} }

// guarded returns the options of a worker with the interceptor.
func guarded(opts temporalworker.Options) worker.Options {
	return worker.Options{
		Interceptors:      []interceptor.WorkerInterceptor{temporalworker.Interceptor(opts)},
		WorkerStopTimeout: time.Second,
	}
}

// start runs a worker with one activity, and the workflows.
func start(t testing.TB, c client.Client, queue string, options worker.Options, work any) worker.Worker {
	t.Helper()
	w := worker.New(c, queue, options)
	w.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: "work"})
	w.RegisterWorkflow(one)
	w.RegisterWorkflow(session)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// A plan is the argument of the workflow: the options of its activity.
type plan struct {
	StartToClose, Heartbeat time.Duration
	Attempts                int32
	Final                   []string // NonRetryableErrorTypes
}

// A verdict is the outcome that the workflow gets.
type verdict struct {
	Result  string
	Err     string
	Type    string // of the ApplicationError, or "Canceled", or "TimeoutError"
	Outcome temporalworker.Outcome
	Has     bool
	Partial string
	Retry   string
}

func one(ctx workflow.Context, p plan) (v verdict, _ error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: p.StartToClose, HeartbeatTimeout: p.Heartbeat, WaitForCancellation: true, ActivityID: "work",
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: p.Attempts, InitialInterval: 100 * time.Millisecond,
			MaximumInterval: 100 * time.Millisecond, NonRetryableErrorTypes: p.Final},
	})
	err := workflow.ExecuteActivity(ctx, "work").Get(ctx, &v.Result)
	if err == nil {
		return v, nil
	}
	v.Err = err.Error()
	for e := err; e != nil; e = unwrap(e) {
		switch e := e.(type) {
		case *temporal.ActivityError:
			v.Retry = e.RetryState().String()
		case *temporal.ApplicationError:
			v.Type = e.Type()
		case *temporal.CanceledError:
			v.Type = "Canceled"
		case *temporal.TimeoutError:
			v.Type = "Timeout " + e.TimeoutType().String()
		default:
			continue
		}
		if v.Type != "" {
			break
		}
	}
	if v.Outcome, v.Has = temporalworker.OutcomeOf(err); v.Has {
		_ = v.Outcome.Partial(&v.Partial)
	}
	return v, nil
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

func begin(t testing.TB, c client.Client, queue string, p plan) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: queue, ID: queue}, one, p)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func get(t testing.TB, run client.WorkflowRun) (v verdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*slack)
	defer cancel()
	if err := run.Get(ctx, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// doomed is a worker that hangs in its activity until it is killed.
func doomed(address string) {
	c, err := client.Dial(client.Options{HostPort: address, Namespace: os.Getenv(namespaceEnv), Logger: quiet})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	w := worker.New(c, os.Getenv(queueEnv), guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Hour})}))
	w.RegisterActivityWithOptions(func(ctx context.Context) (string, error) {
		activity.RecordHeartbeat(ctx, "half")
		fmt.Println("begun")
		<-ctx.Done()
		return "", ctx.Err()
	}, activity.RegisterOptions{Name: "work"})
	if err := w.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent's end, if it does not kill
}
