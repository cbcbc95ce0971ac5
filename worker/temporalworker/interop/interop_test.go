package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// stalls records heartbeats for a second, and hangs.
func stalls(told func(time.Duration)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		begun := time.Now()
		for i := 0; time.Since(begun) < time.Second; i++ {
			activity.RecordHeartbeat(ctx, i)
			time.Sleep(50 * time.Millisecond)
		}
		select {
		case <-ctx.Done():
			told(time.Since(begun))
			return "half", ctx.Err()
		case <-time.After(6 * time.Second):
			told(-1)
			return "late", nil
		}
	}
}

// SPEC 13.1: the workflow of an activity that stalls gets the outcome of the limit that stopped it, with what was
// recorded. The first case is the SDK alone. The log says when the activity was told.
func TestStall(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options worker.Options
		plan    plan
		typ     string
		retry   string
	}{
		{"the SDK alone, HeartbeatTimeout 2 s", worker.Options{}, plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 1},
			"Timeout Heartbeat", ""},
		{"idle as HeartbeatTimeout 2 s", guarded(temporalworker.Options{}), plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 1},
			temporalworker.TypeIdle, "MaximumAttemptsReached"},
		{"idle 600 ms, HeartbeatTimeout 2 s", guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: 600 * time.Millisecond})}),
			plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 1}, temporalworker.TypeIdle, "MaximumAttemptsReached"},
		{"idle 600 ms, not retried", guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: 600 * time.Millisecond})}),
			plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 5, Final: []string{temporalworker.TypeIdle}}, temporalworker.TypeIdle, "NonRetryableFailure"},
		{"total, StartToClose 3 s", guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Minute})}), plan{StartToClose: 3 * time.Second, Heartbeat: 2 * time.Second, Attempts: 1},
			temporalworker.TypeTotal, "MaximumAttemptsReached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, queue := connect(t), t.Name()
			told := make(chan time.Duration, 5)
			w := start(t, c, queue, tt.options, stalls(func(d time.Duration) { told <- d }))
			defer w.Stop()
			begun := time.Now()
			v := get(t, begin(t, c, queue, tt.plan))
			took := time.Since(begun)
			t.Logf("the activity was told at %v, the workflow at %v: %s, %s", <-told, took.Round(time.Millisecond), v.Type, v.Err)
			if v.Type != tt.typ || tt.retry != "" && !strings.EqualFold(v.Retry, tt.retry) {
				t.Errorf("got %+v", v)
			}
			if !strings.HasPrefix(tt.typ, "Timeout") && (v.Partial != "half" || v.Outcome.Last == "") {
				// No stack is asked for: this process has the thousands of goroutines of a server.
				t.Errorf("outcome %+v, partial result %q", v.Outcome, v.Partial)
			}
		})
	}
}

// A silent activity survives a HeartbeatTimeout that is shorter than its silence. The SDK's throttle leaves a
// fifth of that timeout for a busy machine.
func TestSilent(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Minute})}), func(ctx context.Context) (string, error) {
		time.Sleep(25 * time.Second)
		return "all", ctx.Err()
	})
	defer w.Stop()
	if v := get(t, begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 10 * time.Second, Attempts: 1})); v.Result != "all" {
		t.Errorf("got %+v", v)
	}
}

// Details survive two attempts that were stopped, however they were recorded, and the third attempt continues.
func TestDetails(t *testing.T) {
	for name, report := range map[string]func(context.Context, int){
		"recorded": func(ctx context.Context, n int) {
			activity.RecordHeartbeat(ctx, n)
			heartbeat.BeatWith(ctx, "a library's")
		},
		"beats": func(ctx context.Context, n int) { heartbeat.BeatWith(ctx, n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, queue := connect(t), t.Name()
			w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: 600 * time.Millisecond})}), func(ctx context.Context) (string, error) {
				n := 0
				if activity.GetInfo(ctx).Attempt > 1 {
					if err := activity.GetHeartbeatDetails(ctx, &n); err != nil {
						return "", err
					}
				}
				if activity.GetInfo(ctx).Attempt == 2 { // nothing new
					<-ctx.Done()
					return "", ctx.Err()
				}
				for range 5 {
					n++
					report(ctx, n)
				}
				if n == 10 {
					return fmt.Sprint(n), nil
				}
				<-ctx.Done()
				return "", ctx.Err()
			})
			defer w.Stop()
			if v := get(t, begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 3})); v.Result != "10" {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// An operator sees why an activity is retried.
func TestPending(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	release := make(chan struct{})
	w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: 600 * time.Millisecond})}), func(ctx context.Context) (string, error) {
		if activity.GetInfo(ctx).Attempt == 2 {
			return "", heartbeat.Keep(ctx, 0, func(context.Context) error { <-release; return nil })
		}
		activity.RecordHeartbeat(ctx, "file 37")
		<-ctx.Done()
		return "", ctx.Err()
	})
	defer w.Stop()
	run := begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 3})
	p := pending(t, c, run, func(p *workflowpb.PendingActivityInfo) bool { return p.GetAttempt() == 2 })
	f := p.GetLastFailure()
	details := p.GetHeartbeatDetails().String()
	t.Logf("message %q, type %q, details %s", f.GetMessage(), f.GetApplicationFailureInfo().GetType(), details)
	if f.GetApplicationFailureInfo().GetType() != temporalworker.TypeIdle || strings.Contains(f.GetMessage(), "37") || !strings.Contains(details, "file 37") {
		t.Errorf("got %v, %s", f, details)
	}
	close(release)
	get(t, run)
}

// pending waits until the activity of the workflow has a state.
func pending(t *testing.T, c client.Client, run client.WorkflowRun, until func(*workflowpb.PendingActivityInfo) bool) *workflowpb.PendingActivityInfo {
	t.Helper()
	var last any
	for begun := time.Now(); time.Since(begun) < slack; time.Sleep(50 * time.Millisecond) {
		d, err := c.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.GetPendingActivities() {
			if last = p; until(p) {
				return p
			}
		}
	}
	t.Fatalf("the activity is %v", last)
	return nil
}

// If an activity ignores its context, attempt 2 begins beside it after the idle limit and the grace, and no
// heartbeat is sent for attempt 1.
func TestDeaf(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	var second atomic.Int64
	begun := time.Now()
	over := make(chan struct{})
	w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Second, Grace: 100 * time.Millisecond})}), func(ctx context.Context) (string, error) {
		if activity.GetInfo(ctx).Attempt == 1 {
			defer close(over)
			begun = time.Now()
			for time.Since(begun) < 4*time.Second {
				time.Sleep(100 * time.Millisecond) // whatever becomes of ctx
			}
			activity.RecordHeartbeat(ctx, "late")
			return "zombie", nil
		}
		second.Store(int64(time.Since(begun)))
		<-over
		return "all", nil
	})
	defer w.Stop()
	v := get(t, begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 10 * time.Second, Attempts: 2}))
	took := time.Duration(second.Load())
	t.Logf("attempt 2 began at %v; abandoned now: %d", took, timeout.AbandonedCount())
	if v.Type != temporalworker.TypeIdle && v.Result != "all" || took == 0 || took > 4*time.Second {
		t.Errorf("after %v: %+v", took, v)
	}
}

// A renewal tells a silent activity that it was cancelled, and the workflow gets its partial result.
func TestCancel(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	begun, told := make(chan struct{}), make(chan time.Time, 1)
	w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Minute})}), func(ctx context.Context) (string, error) {
		close(begun)
		<-ctx.Done()
		told <- time.Now()
		return "half", ctx.Err()
	})
	defer w.Stop()
	run := begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 5 * time.Second, Attempts: 1})
	<-begun
	time.Sleep(500 * time.Millisecond)
	asked := time.Now()
	if err := c.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()); err != nil {
		t.Fatal(err)
	}
	v := get(t, run)
	t.Logf("told %v after the request", (<-told).Sub(asked))
	if v.Type != "Canceled" || v.Partial != "half" || v.Outcome.Kind != "aborted" {
		t.Errorf("got %+v", v)
	}
}

// The service notices that a worker was killed, and another worker takes over with its details.
func TestKilled(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	workflows := worker.New(c, queue, worker.Options{DisableWorkflowWorker: false, LocalActivityWorkerOnly: true})
	workflows.RegisterWorkflow(one)
	if err := workflows.Start(); err != nil {
		t.Fatal(err)
	}
	defer workflows.Stop()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), addressEnv+"="+address, namespaceEnv+"="+namespace, queueEnv+"="+queue)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run := begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 2})
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "begun\n" {
		t.Errorf("the worker says %q, %v", line, err)
	}
	time.Sleep(5 * time.Second) // two renewals and more: it is alive
	if p := pending(t, c, run, func(*workflowpb.PendingActivityInfo) bool { return true }); p.GetAttempt() != 1 {
		t.Errorf("attempt %d of a worker that lives", p.GetAttempt())
	}
	again := make(chan time.Time, 1)
	killed := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	w := start(t, c, queue, guarded(temporalworker.Options{}), func(ctx context.Context) (s string, err error) {
		again <- time.Now()
		err = activity.GetHeartbeatDetails(ctx, &s)
		return s, err
	})
	defer w.Stop()
	v := get(t, run)
	t.Logf("attempt 2 began %v after the kill", (<-again).Sub(killed))
	if v.Result != "half" {
		t.Errorf("got %+v", v)
	}
}

// A worker that is stopped hands its activity to another worker.
func TestWorkerStops(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	first := make(chan struct{}, 1)
	work := func(ctx context.Context) (string, error) {
		if activity.GetInfo(ctx).Attempt == 1 {
			activity.RecordHeartbeat(ctx, "half")
			first <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}
		var s string
		return "from " + s, activity.GetHeartbeatDetails(ctx, &s)
	}
	w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Minute})}), work)
	run := begin(t, c, queue, plan{StartToClose: time.Hour, Heartbeat: 30 * time.Second, Attempts: 2})
	<-first
	stopped := time.Now()
	w.Stop()
	w2 := start(t, connect(t), queue, guarded(temporalworker.Options{}), work)
	defer w2.Stop()
	v := get(t, run)
	t.Logf("done elsewhere %v after Stop: %q", time.Since(stopped).Round(time.Millisecond), v.Result)
	if v.Err != "" {
		t.Errorf("got %+v", v)
	}
}

// An operator pauses and resets an activity.
func TestPauseAndReset(t *testing.T) {
	for _, what := range []string{"pause", "reset"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, queue := connect(t), t.Name()
			var attempts atomic.Int32
			causes := make(chan error, 5)
			begun := make(chan struct{}, 5)
			w := start(t, c, queue, guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: time.Minute})}), func(ctx context.Context) (string, error) {
				if attempts.Add(1) == 2 {
					return "all", nil
				}
				begun <- struct{}{}
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return "", ctx.Err()
			})
			defer w.Stop()
			p := plan{StartToClose: time.Hour, Heartbeat: 2 * time.Second, Attempts: 1}
			if what == "reset" {
				p.Attempts = 2 // the attempt that was reset counts
			}
			run := begin(t, c, queue, p)
			<-begun
			ctx := context.Background()
			execution := &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}
			asked := time.Now()
			if what == "pause" {
				if _, err := c.WorkflowService().PauseActivity(ctx, &workflowservice.PauseActivityRequest{Namespace: namespace,
					Execution: execution, Activity: &workflowservice.PauseActivityRequest_Id{Id: "work"}}); err != nil {
					t.Fatal(err)
				}
				pending(t, c, run, func(p *workflowpb.PendingActivityInfo) bool {
					return p.GetState() == enumspb.PENDING_ACTIVITY_STATE_PAUSED
				})
				t.Logf("paused %v after the request: %v", time.Since(asked), <-causes)
				time.Sleep(time.Second)
				if n := attempts.Load(); n != 1 {
					t.Errorf("%d attempts of a paused activity", n)
				}
				if _, err := c.WorkflowService().UnpauseActivity(ctx, &workflowservice.UnpauseActivityRequest{Namespace: namespace,
					Execution: execution, Activity: &workflowservice.UnpauseActivityRequest_Id{Id: "work"}}); err != nil {
					t.Fatal(err)
				}
			} else if _, err := c.WorkflowService().ResetActivity(ctx, &workflowservice.ResetActivityRequest{Namespace: namespace,
				Execution: execution, Activity: &workflowservice.ResetActivityRequest_Id{Id: "work"}}); err != nil {
				t.Fatal(err)
			} else {
				t.Logf("reset %v after the request: %v", time.Since(asked), <-causes)
			}
			if v := get(t, run); v.Result != "all" || attempts.Load() != 2 {
				t.Errorf("%d attempts: %+v", attempts.Load(), v)
			}
		})
	}
}

// session is a workflow that keeps a session open for longer than its HeartbeatTimeout.
func session(ctx workflow.Context) (id string, _ error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}})
	ctx, err := workflow.CreateSession(ctx, &workflow.SessionOptions{CreationTimeout: time.Minute, ExecutionTimeout: time.Hour,
		HeartbeatTimeout: 2 * time.Second})
	if err != nil {
		return "", err
	}
	defer workflow.CompleteSession(ctx)
	for range 2 {
		if err := workflow.ExecuteActivity(ctx, "work").Get(ctx, &id); err != nil {
			return "", err
		}
	}
	return id, nil
}

func TestSession(t *testing.T) {
	t.Parallel()
	c, queue := connect(t), t.Name()
	options := guarded(temporalworker.Options{Policy: within(timeout.Config{Idle: 6 * time.Second})})
	options.EnableSessionWorker = true
	w := start(t, c, queue, options, func(ctx context.Context) (string, error) {
		time.Sleep(4 * time.Second)
		return "all", ctx.Err()
	})
	defer w.Stop()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: queue}, session)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(context.Background(), &got); err != nil || got != "all" {
		t.Errorf("%q, %v", got, err)
	}
	creations := 0
	history := c.GetWorkflowHistory(context.Background(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && a.GetAttempt() > 1 {
			creations++
		}
	}
	if creations > 0 {
		t.Errorf("%d activities of the session were started again", creations)
	}
}
