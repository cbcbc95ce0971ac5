//go:build unix

package progress_test

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.3: the newest line of a command's output is the message where the tool gives none.
func TestNewestLineIsTheMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		report *progress.Update
		script string // writes what the client hears of, and then waits
		want   progress.Notification
	}{
		{"a finished line", nil, `echo one; echo "compiling  main.go"`, progress.Notification{Message: "compiling  main.go"}},
		{"an unfinished line", nil, `echo one; printf 'linking...'`, progress.Notification{Message: "linking..."}},
		{"a line that is drawn again", nil, `printf '10%%\r'; printf '20%% done\r'`, progress.Notification{Message: "20% done"}},
		{"empty lines", nil, `printf 'tests passed\r\n\n  \n\r\n'`, progress.Notification{Message: "tests passed"}},
		{"colours", nil, `printf '\033[31mfailed\033[0m\n'`, progress.Notification{Message: "failed"}},
		{"stderr", nil, `echo err >&2`, // alone: what comes through two pipes has no order
			progress.Notification{Message: "err"}},
		{"figures of the tool", &progress.Update{Progress: 3, Total: 10}, `echo line`, progress.Notification{Progress: 3, Total: 10, Message: "line"}},
		{"words of the tool", &progress.Update{Progress: 3, Message: "building"}, `echo line`, progress.Notification{Progress: 3, Message: "building"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				in, end := io.Pipe()
				heard := make(chan progress.Notification, 1000)
				defer progress.Start(ctx, "token", -1, func(_ context.Context, n progress.Notification) error {
					heard <- n
					return nil
				})()
				if tt.report != nil {
					progress.Report(ctx, *tt.report)
				}
				cmd := exec.Command("sh", "-c", tt.script+"; read x")
				cmd.Stdin = in
				p, err := procgroup.Start(ctx, cmd)
				if err != nil {
					return err
				}
				late := time.After(time.Minute)
				until := func(message string) {
					for {
						select {
						case n := <-heard:
							if n.Message == message && n.Total == tt.want.Total {
								return
							}
						case <-late:
							t.Errorf("%q has not been heard", message)
							return
						}
					}
				}
				until(tt.want.Message)
				end.Close()
				_, _ = p.Wait()
				for len(heard) > 0 {
					<-heard
				}
				heartbeat.Beat(ctx)
				if tt.report == nil {
					until("") // the command speaks no longer
				} else {
					until(tt.report.Message)
				}
				return nil
			}, timeout.Config{})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
