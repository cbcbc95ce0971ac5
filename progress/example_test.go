package progress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// limits allows a minute per step.
var limits = timeout.Config{Idle: time.Minute}

func ExampleReport() {
	search := func(ctx context.Context, files []string) error {
		for i, file := range files {
			progress.Report(ctx, progress.Update{Progress: float64(i + 1), Total: float64(len(files)), Message: file})
		}
		return nil
	}
	// Outside a server the same tool sends nothing.
	fmt.Println(search(context.Background(), []string{"a.go", "b.go"}))
	// Output: <nil>
}

func ExampleUpdate_String() {
	fmt.Println(progress.Update{Progress: 37, Total: 100, Message: "file"})
	fmt.Println(progress.Update{Progress: 37, Message: "37 files"})
	fmt.Println(progress.Update{Progress: 0.5, Total: 1})
	// Output:
	// file 37 of 100
	// 37 files
	// 0.5 of 1
}

// A keep-alive after "7 of 10" is larger than 7 to a client, and 7 to a person.
func ExampleStep() {
	next := progress.Step(7)
	fmt.Println(next > 7, progress.Update{Progress: next, Total: 10})
	// Output: true 7 of 10
}

// A server without an SDK sends the notifications itself.
func ExampleStart() {
	var mu sync.Mutex
	sent := make(chan bool, 10)
	write := func(method string, params any) error {
		mu.Lock()
		defer mu.Unlock()
		data, err := json.Marshal(params)
		fmt.Println(method, string(data))
		sent <- true
		return err
	}

	call := func(ctx context.Context, token any, tool func(context.Context) error) error {
		stop := func() {}
		err := timeout.RunWithExecutionTimeout(ctx, tool, limits, timeout.WithHooks(timeout.Hooks{
			Started: func(ctx context.Context, _ timeout.Snapshot) {
				stop = progress.Start(ctx, token, 0, func(_ context.Context, n progress.Notification) error {
					return write("notifications/progress", n)
				})
			},
		}))
		stop() // before the answer
		return err
	}

	err := call(context.Background(), "token-1", func(ctx context.Context) error {
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		<-sent
		return nil
	})
	fmt.Println(err)
	// Output:
	// notifications/progress {"progressToken":"token-1","progress":3,"total":10,"message":"main.go"}
	// <nil>
}

// At most one notification a second.
func ExampleStart_interval() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		sent := make(chan float64, 100)
		stop := progress.Start(ctx, 7, 50*time.Millisecond, func(_ context.Context, n progress.Notification) error {
			sent <- n.Progress
			return nil
		})
		defer stop()
		progress.Report(ctx, progress.Update{Progress: 1})
		fmt.Println(<-sent)
		for i := range 1000 {
			progress.Report(ctx, progress.Update{Progress: float64(i)})
		}
		fmt.Println(<-sent)
		return nil
	}, limits)
	// Output:
	// 1
	// 999
}

func ExampleNotification_MarshalJSON() {
	n := progress.Notification{ProgressToken: json.Number("9007199254740993"), Progress: 0.5}
	data, err := json.Marshal(n)
	fmt.Println(string(data), err)
	// Output: {"progressToken":9007199254740993,"progress":0.5} <nil>
}

// The tool asks for approval before a step that cannot be undone.
func ExampleAwait() {
	person := make(chan bool, 1)
	approve := func(ctx context.Context) (bool, error) {
		select {
		case yes := <-person:
			return yes, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}

	person <- true
	fmt.Println(progress.Await(context.Background(), "rm -r build", progress.Wait{}, approve))

	_, err := progress.Await(context.Background(), "rm -r build", progress.Wait{Limit: 10 * time.Millisecond, ProgressLimit: 10 * time.Millisecond}, approve)
	fmt.Println(err)
	fmt.Println(errors.Is(err, progress.ErrNoAnswer), timeout.ExitCode(err))
	// Output:
	// true <nil>
	// Command timed out waiting for approval. Consider approving faster or configuring a longer timeout.
	// true 124
}

// A model's sample is no approval: AwaitReply says so.
func ExampleAwaitReply() {
	_, err := progress.AwaitReply(context.Background(), "an answer of the model", progress.Wait{Limit: 10 * time.Millisecond, ProgressLimit: time.Minute}, func(ctx context.Context) (string, error) {
		<-ctx.Done() // the client does not reply
		return "", ctx.Err()
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, progress.ErrNoAnswer), timeout.ExitCode(err))
	// Output:
	// Command timed out waiting for an answer of the model. Consider configuring a longer timeout.
	// true 124
}

// A client that follows the progress of its request can be asked for longer than one that does not. A host that gives a
// call up after 60 s, and has no progress token, is asked for as long as it waits.
func ExampleWait() {
	wait := progress.Wait{ProgressLimit: 10 * time.Minute, HostLimit: 60 * time.Second, KeepAlive: 15 * time.Second}
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		_, _ = progress.Await(ctx, "the deployment", wait, func(ctx context.Context) (string, error) {
			deadline, _ := ctx.Deadline()
			fmt.Println(time.Until(deadline).Round(time.Second))
			return "go ahead", nil
		})
		return nil
	})
	// Output: 58s
}

func ExampleWait_words() {
	german := func(_ string, _, left time.Duration) string {
		return fmt.Sprintf("Warte auf Zustimmung, noch %v", left.Round(time.Second))
	}
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		_, _ = progress.Await(ctx, "the deployment", progress.Wait{Words: german}, func(context.Context) (string, error) {
			fmt.Println(progress.UpdateOf(heartbeat.FromContext(ctx).Detail()))
			return "go ahead", nil
		})
		return nil
	})
	// Output: Warte auf Zustimmung, noch 30s
}

func ExampleUpdateOf() {
	fmt.Println(progress.UpdateOf("linking"))
	fmt.Println(progress.UpdateOf(&progress.Update{Progress: 3, Total: 10, Message: "main.go"}))
	fmt.Printf("%q\n", progress.UpdateOf(struct{ Token string }{"secret"}).String())
	// Output:
	// linking
	// main.go 3 of 10
	// ""
}
