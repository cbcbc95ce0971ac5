package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// limits allows a minute per step.
var limits = timeout.Config{Idle: time.Minute}

func ExampleBeat() {
	index := func(ctx context.Context, files []string) error {
		for range files {
			heartbeat.Beat(ctx)
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	files := []string{"a", "b", "c"}

	fmt.Println(index(context.Background(), files)) // outside an execution it does nothing
	fmt.Println(timeout.Run(context.Background(), func(ctx context.Context) error {
		err := index(ctx, files)
		fmt.Println(heartbeat.FromContext(ctx).Count(), "beats")
		return err
	}, limits))
	// Output:
	// <nil>
	// 3 beats
	// <nil>
}

func ExampleBeatWith() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		done := make(chan struct{})
		stop := heartbeat.Relay(ctx, time.Minute, func(_ context.Context, detail any) {
			fmt.Println(detail)
			close(done)
		})
		defer stop()
		heartbeat.BeatWith(ctx, "12 of 70 files")
		<-done
		return nil
	}, limits)
	// Output: 12 of 70 files
}

// A loop that beats millions of times looks up its execution once.
func ExampleFromContext() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		beat := heartbeat.FromContext(ctx)
		sum := int64(0)
		for i := range int64(100_000) {
			sum += i
			beat.Beat()
		}
		fmt.Println(sum, beat.Count() > 0)
		return nil
	}, limits)
	fmt.Println(heartbeat.FromContext(context.Background()).Count())
	// Output:
	// 4999950000 true
	// 0
}

// The detail of a stuck tool says how far it has come.
func ExampleMonitor_Detail() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		heartbeat.BeatWith(ctx, "file 37 of 100")
		heartbeat.Beat(ctx)
		fmt.Println("last:", heartbeat.FromContext(ctx).Detail())
		return nil
	})
	// Output: last: file 37 of 100
}

func ExampleInterval() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println(heartbeat.Interval(ctx))
		return nil
	}, timeout.Config{Idle: 3 * time.Second})
	fmt.Println(heartbeat.Interval(context.Background()))
	// Output:
	// 1.5s
	// 10s
}

// A call that cannot beat may take longer than the idle limit.
func ExampleKeep() {
	query := func(context.Context) error {
		time.Sleep(400 * time.Millisecond)
		return errors.New("no rows")
	}
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		return heartbeat.Keep(ctx, 30*time.Millisecond, query)
	}, timeout.Config{Idle: 300 * time.Millisecond})
	fmt.Println(err)
	// Output: no rows
}

func ExampleHold() {
	approval := make(chan bool)
	go func() { time.Sleep(400 * time.Millisecond); approval <- true }() // a person

	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		release := heartbeat.Hold(ctx)
		defer release()
		select {
		case ok := <-approval:
			fmt.Println("approved:", ok)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, timeout.Config{Idle: 300 * time.Millisecond, Total: time.Minute})
	fmt.Println(err)
	// Output:
	// approved: true
	// <nil>
}

func ExampleReader() {
	download := strings.NewReader("sixteen bytes...")
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		data, err := io.ReadAll(heartbeat.Reader(ctx, download))
		fmt.Println(len(data), heartbeat.FromContext(ctx).Count())
		return err
	}, limits)
	// Output: 16 1
}

func ExampleWriter() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		w := heartbeat.Writer(ctx, io.Discard)
		for range 3 {
			fmt.Fprintln(w, "a line")
		}
		fmt.Println(heartbeat.FromContext(ctx).Count())
		return nil
	}, limits)
	// Output: 3
}

// The sink gets the first beat at once, and the newest of the others when the interval has passed.
func ExampleRelay() {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		progress := make(chan any, 10)
		stop := heartbeat.Relay(ctx, 300*time.Millisecond, func(_ context.Context, detail any) {
			progress <- detail
		})
		defer stop()
		heartbeat.BeatWith(ctx, "started")
		fmt.Println(<-progress)
		for i := range 100 {
			heartbeat.BeatWith(ctx, fmt.Sprintf("%d %%", i+1))
		}
		fmt.Println(<-progress)
		return nil
	}, limits)
	// Output:
	// started
	// 100 %
}
