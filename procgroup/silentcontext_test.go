//go:build linux

package procgroup_test

import (
	"context"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// A silentContext answers nothing any more once it is silent.
type silentContext struct {
	context.Context
	silent  atomic.Bool
	release chan struct{}
}

func (c *silentContext) wait() {
	if c.silent.Load() {
		<-c.release
	}
}

func (c *silentContext) Deadline() (time.Time, bool) { c.wait(); return c.Context.Deadline() }
func (c *silentContext) Done() <-chan struct{}       { c.wait(); return c.Context.Done() }
func (c *silentContext) Err() error                  { c.wait(); return c.Context.Err() }
func (c *silentContext) Value(key any) any           { c.wait(); return c.Context.Value(key) }

// SPEC 3.24: the stop and the kill of a command wait for no method of the caller's context.
func TestContextThatFallsSilent(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a limit":                  "echo $$; exec sleep 60",
		"an end with an orphan":    "sleep 60 >/dev/null 2>&1 & echo $!; sleep 0.1",
		"an end that writes a lot": "sleep 60 & echo $!; sleep 0.1; yes | head -c 200000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := &silentContext{Context: context.Background(), release: make(chan struct{})}
			first := make(chan string, 1)
			output := procgroup.Capture{Each: func(c procgroup.Chunk) {
				if len(c.Data) == 0 {
					return // the end of stderr, which may be seen first
				}
				select {
				case first <- string(c.Data):
				default:
				}
			}}
			p, err := procgroup.Start(ctx, exec.Command("sh", "-c", script), procgroup.Stop{Grace: 100 * time.Millisecond},
				procgroup.Limits{Total: time.Second}, output)
			if err != nil {
				t.Fatal(err)
			}
			ctx.silent.Store(true)
			line, _, _ := strings.Cut(<-first, "\n")
			pid := atoi(line)
			harness.Eventually(t, "the kill", func() bool { return !alive(pid) })
			if _, err := p.Wait(); err != nil && name != "a limit" {
				t.Error(err)
			}
			close(ctx.release)
		})
	}
}
