package progress_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.18: the client learns what a command waits for, though that is no sign of life.
func TestClientHearsOfInput(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var messages []string
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		stop := progress.Start(ctx, "token", -1, func(_ context.Context, n progress.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			if n.Message != "" {
				messages = append(messages, n.Message)
			}
			return nil
		})
		defer stop()
		cmd := exec.Command("sh", "-c", `printf 'Continue? [y/N] '; read x`)
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		x := timeout.FromContext(ctx)
		_, err = procgroup.Run(ctx, cmd, procgroup.Input{Notify: func(w procgroup.InputWait) {
			if w.Pid == 0 {
				return
			}
			s := x.Snapshot()
			if fmt.Sprint(s.Detail) != w.String() || s.SinceBeat < 100*time.Millisecond {
				t.Errorf("the tool's snapshot has %v, %v after the last beat", s.Detail, s.SinceBeat)
			}
			harness.Eventually(t, "the client to hear of it", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Contains(messages, w.String())
			})
			in.Close()
		}})
		return err
	}, timeout.Config{Idle: time.Minute})
	mu.Lock()
	defer mu.Unlock()
	if timeout.ExitCode(err) != 1 { // read's, at the end of its input
		t.Error(err)
	}
	// The line itself is the message of a beat, and need not have been sent.
	messages = slices.DeleteFunc(messages, func(m string) bool { return m == "Continue? [y/N]" })
	if diff := cmp.Diff([]string{"waits for input: Continue? [y/N]"}, messages); diff != "" {
		t.Error(diff)
	}
}
