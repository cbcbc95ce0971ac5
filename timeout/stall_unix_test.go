//go:build unix

package timeout_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// stallChild is the process that TestRealStall stops: it runs one tool under an idle limit of 1 s, which beats until
// its input ends or does nothing, and says how that ended.
func stallChild(beats bool) {
	var seen timeout.Snapshot
	input := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(input)
	}()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println("running")
		for beats && ctx.Err() == nil {
			heartbeat.Beat(ctx)
			select {
			case <-input:
				return nil
			case <-time.After(10 * time.Millisecond):
			}
		}
		<-ctx.Done()
		return nil
	}, timeout.Config{Idle: time.Second}, timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { seen = s }}))
	fmt.Println("idle", errors.Is(err, timeout.ErrIdle), "stalled", seen.Stalls > 0)
}

// SPEC 3.16, with real signals: the clock of a process that is stopped goes on, and its timers do not.
func TestRealStall(t *testing.T) {
	for mode, want := range map[string]string{"beats": "idle false stalled true", "stuck": "idle true stalled true"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cmd := child(t, "stall "+mode)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			lines := bufio.NewScanner(stdout)
			if !lines.Scan() || lines.Text() != "running" {
				t.Fatalf("the child says %q, %v", lines.Text(), lines.Err())
			}
			signal(t, cmd, syscall.SIGSTOP)
			time.Sleep(1600 * time.Millisecond) // the limit and its slack: it is this time that the test is about
			signal(t, cmd, syscall.SIGCONT)
			stdin.Close()
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("the child says %q, want %q, %v", lines.Text(), want, lines.Err())
			}
		})
	}
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
