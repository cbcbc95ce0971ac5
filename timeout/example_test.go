package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tool that works for longer than the idle limit, and one that gets stuck.
func ExampleRunWithExecutionTimeout() {
	limits := timeout.Config{Total: time.Minute, Idle: 300 * time.Millisecond}

	err := timeout.RunWithExecutionTimeout(context.Background(), func(ctx context.Context) error {
		for range 20 {
			time.Sleep(20 * time.Millisecond) // work
			heartbeat.Beat(ctx)
		}
		return nil
	}, limits)
	fmt.Println(err, timeout.ExitCode(err))

	err = timeout.RunWithExecutionTimeout(context.Background(), func(ctx context.Context) error {
		<-ctx.Done() // no progress
		return ctx.Err()
	}, limits)
	fmt.Println(err, timeout.ExitCode(err))
	// Output:
	// <nil> 0
	// No progress for 0.3s (idle timeout). Tool should call heartbeat() during long work. 124
}

func ExampleRun() {
	ctx, abort := context.WithCancel(context.Background())
	err := timeout.Run(ctx, func(ctx context.Context) error {
		abort() // as if the caller had pressed Ctrl-C
		<-ctx.Done()
		return ctx.Err()
	}, timeout.FastTools())

	switch {
	case errors.Is(err, timeout.ErrIdle), errors.Is(err, timeout.ErrTotal):
		fmt.Println("timed out:", err)
	case errors.Is(err, timeout.ErrAborted):
		fmt.Println("aborted, exit code", timeout.ExitCode(err))
	}
	// Output: aborted, exit code 130
}

// The value that the function returns after the limit is its partial result.
func ExampleDo() {
	found, err := timeout.Do(context.Background(), func(ctx context.Context) (found []string, err error) {
		for _, name := range []string{"a.go", "b.go"} {
			found = append(found, name)
			heartbeat.Beat(ctx)
		}
		<-ctx.Done() // the third one hangs
		return found, ctx.Err()
	}, timeout.Config{Total: 10 * time.Millisecond})
	fmt.Println(found, err)
	// Output: [a.go b.go] Tool exceeded wall-clock limit of 0.01s.
}

func ExampleError() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("connection closed")
	}, timeout.Config{Idle: 10 * time.Millisecond}, timeout.WithName("fetch"))

	var stopped *timeout.Error
	if errors.As(err, &stopped) {
		fmt.Println(stopped.Kind, stopped.Tool, stopped.Limit, stopped.Beats, stopped.Abandoned)
		fmt.Println("the tool said:", stopped.Err)
	}
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled))
	// Output:
	// idle fetch 10ms 0 false
	// the tool said: connection closed
	// true false
}

// The message of a tool that was stopped, for a person.
func ExampleError_Format() {
	err := &timeout.Error{
		Kind:    timeout.ErrIdle,
		Figures: timeout.Figures{Tool: "hash", Elapsed: 90 * time.Second, SinceBeat: time.Minute, LongestGap: time.Minute, Beats: 37, Detail: "file 37 of 100"},
		Limit:   time.Minute,
	}
	fmt.Println(err)
	fmt.Printf("%+v\n", err)
	// Output:
	// No progress for 60s (idle timeout). Tool should call heartbeat() during long work.
	// No progress for 60s (idle timeout). Tool should call heartbeat() during long work. [tool hash; elapsed 1m30s; since beat 1m0s; longest gap 1m0s; beats 37; last: file 37 of 100]
}

func ExampleExitCode() {
	fmt.Println(timeout.ExitCode(nil))
	fmt.Println(timeout.ExitCode(&timeout.Error{Kind: timeout.ErrTotal}))
	fmt.Println(timeout.ExitCode(&timeout.Error{Kind: timeout.ErrAborted}))
	fmt.Println(timeout.ExitCode(errors.New("no such model")))
	// Output:
	// 0
	// 124
	// 130
	// 1
}

// SPEC 2.4: the presets.
func ExampleDefault() {
	fmt.Printf("%+v\n", timeout.Default())
	// Output: {Total:30m0s Idle:2m0s Grace:0s Reserve:0s}
}

func ExampleFastTools() {
	fmt.Printf("%+v\n", timeout.FastTools())
	// Output: {Total:1m0s Idle:30s Grace:0s Reserve:0s}
}

func ExampleNoIdleCheck() {
	fmt.Printf("%+v\n", timeout.NoIdleCheck())
	// Output: {Total:3m0s Idle:0s Grace:0s Reserve:0s}
}

func ExampleUnboundedTotal() {
	fmt.Printf("%+v\n", timeout.UnboundedTotal())
	// Output: {Total:0s Idle:2m0s Grace:0s Reserve:0s}
}

func ExampleConfig_Normalize() {
	c, warnings := timeout.Config{Total: time.Minute, Idle: time.Hour, Grace: time.Second}.Normalize()
	fmt.Printf("%+v\n", c)
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// {Total:1m0s Idle:1m0s Grace:1s Reserve:0s}
	// idle timeout 1h0m0s exceeds total timeout 1m0s; using 1m0s
}

func ExampleConfig_SessionTimeout() {
	fmt.Println(timeout.FastTools().SessionTimeout())
	fmt.Println(timeout.UnboundedTotal().SessionTimeout())
	// Output:
	// 1m30s
	// 0s
}

// A program that refuses to start where a variable cannot be read. The limits apply without
// this call, too.
func ExampleFromEnv() {
	os.Setenv("MCP_TIMEOUT", "3600")
	os.Setenv("MCP_IDLE_TIMEOUT", "7.5")
	defer os.Unsetenv("MCP_TIMEOUT")
	defer os.Unsetenv("MCP_IDLE_TIMEOUT")

	config, warnings, err := timeout.FromEnv(os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Total, config.Idle, warnings)

	os.Setenv("MCP_IDLE_TIMEOUT", "2m")
	_, _, err = timeout.FromEnv(os.LookupEnv)
	fmt.Println(err)
	// Output:
	// 1h0m0s 7.5s []
	// timeout: MCP_IDLE_TIMEOUT="2m": want seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond
}

func ExampleSetDefault() {
	timeout.SetDefault(timeout.Config{Total: 20 * time.Millisecond})
	defer timeout.SetDefault(timeout.Default())

	fmt.Println(timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil }))
	// Output: Tool exceeded wall-clock limit of 0.02s.
}

// shortLog logs level and message to the standard output.
func shortLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 || a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func ExampleWithName() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil },
		timeout.WithName("fetch"), timeout.Config{Total: time.Millisecond})
	var stopped *timeout.Error
	fmt.Println(errors.As(err, &stopped), stopped.Tool)
	// Output: true fetch
}

// A day passes in no time.
func ExampleWithClock() {
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		mock.Add(24*time.Hour - 1)
		fmt.Println(ctx.Err())
		mock.Add(1)
		<-ctx.Done()
		return nil
	}, timeout.Config{Total: 24 * time.Hour}, timeout.WithClock(mock))
	fmt.Println(err)
	// Output:
	// <nil>
	// Tool exceeded wall-clock limit of 86400s.
}

func ExampleWithLogger() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil },
		timeout.WithLogger(shortLog()), timeout.WithName("fetch"), timeout.Config{Total: time.Millisecond})
	// Output: level=WARN msg="tool timed out" tool=fetch
}

func ExampleWithHooks() {
	hooks := timeout.Hooks{
		Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Println("finished:", s.Tool, s.Beats, s.Err)
		},
	}
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		heartbeat.Beat(ctx)
		return errors.New("not found")
	}, timeout.WithHooks(hooks), timeout.WithName("fetch"))
	// Output: finished: fetch 1 not found
}

func ExampleWithRecover() {
	err := timeout.Run(context.Background(), func(context.Context) error {
		panic("index out of reach")
	}, timeout.WithRecover())
	var p *timeout.PanicError
	fmt.Println(err, errors.As(err, &p), len(p.Stack) > 0)
	// Output: panic: index out of reach true true
}

func ExampleAbandonedCount() {
	deaf := make(chan struct{})
	err := timeout.Run(context.Background(), func(context.Context) error {
		<-deaf // ignores its context
		return nil
	}, timeout.Config{Total: time.Millisecond, Grace: time.Millisecond})
	var stopped *timeout.Error
	fmt.Println(errors.As(err, &stopped) && stopped.Abandoned, timeout.AbandonedCount())

	close(deaf)
	for timeout.AbandonedCount() > 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(timeout.AbandonedCount())
	// Output:
	// true 1
	// 0
}

// A package that reads limits from somewhere makes an option of an error, too.
func ExampleRefuse() {
	limits := func(seconds string) []timeout.Option {
		n, err := strconv.Atoi(seconds)
		return []timeout.Option{timeout.Config{Total: time.Duration(n) * time.Second}, timeout.Refuse(err)}
	}
	work := func(context.Context) error { fmt.Println("working"); return nil }
	fmt.Println(timeout.Run(context.Background(), work, limits("60")...))
	fmt.Println(timeout.Run(context.Background(), work, limits("soon")...))
	// Output:
	// working
	// <nil>
	// strconv.Atoi: parsing "soon": invalid syntax
}

func ExampleProcessDefault() {
	timeout.SetDefault(timeout.FastTools())
	defer timeout.SetDefault(timeout.Default())
	limits, set := timeout.ProcessDefault()
	fmt.Println(limits.Total, set)
	// Output: 1m0s true
}

// What is to be saved is saved even if the program was started for less: TOOL_DEADLINE does not bound it.
func ExampleInherited() {
	deadline, err := timeout.Inherited()
	fmt.Println(deadline.IsZero(), err) // without TOOL_DEADLINE
	// Output: true <nil>
}

func ExampleWithoutInherited() {
	save := func(ctx context.Context) error {
		left, _ := timeout.Remaining(ctx)
		fmt.Println(left > 59*time.Second)
		return nil
	}
	_ = timeout.Run(context.Background(), save, timeout.Config{Total: time.Minute}, timeout.WithoutInherited())
	// Output: true
}
