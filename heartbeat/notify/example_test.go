package notify_test

import (
	"context"
	"fmt"
	"os"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func init() { os.Unsetenv("NOTIFY_SOCKET") } // the examples have no supervisor

// A program whose work is one execution.
func ExampleRelay() {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		defer notify.Relay(ctx)()
		for i := range 3 {
			heartbeat.BeatWith(ctx, fmt.Sprint("file ", i))
		}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// A server: what it does in its executions feeds the watchdog of systemd.
func ExampleWatch() {
	defer notify.Watch()()
	err := timeout.Run(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err)
	// Output: <nil>
}

// With Type=notify, systemd waits for READY=1.
func ExampleSend() {
	fmt.Println(notify.Send("READY=1", "STATUS=listening"))
	// Output: notify: there is no supervisor: NOTIFY_SOCKET is not set
}
