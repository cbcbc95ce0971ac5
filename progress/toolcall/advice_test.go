package toolcall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// hidden is a context that does not show its deadline, so that no wait ends before it.
type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

// SPEC 7.9: the guidance stands wherever a wait for a person was cut short, and what was awaited with it.
func TestAdviceForAWaitThatWasCutShort(t *testing.T) {
	const (
		total    = "Tool exceeded wall-clock limit of 5s."
		approval = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
		roots    = "Command timed out waiting for the list of roots. Consider configuring a longer timeout."
		for5s    = " (5s so far, 25s left)"
	)
	await := func(ctx context.Context) error {
		_, err := progress.Await(ctx, "rm", progress.Wait{}, func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() })
		return err
	}
	reply := func(ctx context.Context) error {
		_, err := progress.AwaitReply(ctx, "the list of roots", progress.Wait{}, func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() })
		return err
	}
	reported := func(ctx context.Context) { progress.Report(ctx, progress.Update{Message: "main.go"}) }
	for _, tt := range []struct {
		name  string
		total time.Duration
		cause error // of an abort after 5 s
		tool  func(context.Context) error
		want  string
	}{
		{"a total", 5 * time.Second, nil, func(ctx context.Context) error { return await(hidden{ctx}) }, total + "\n" + approval + "\nlast: Waiting for approval of rm" + for5s},
		{"a total, for a reply", 5 * time.Second, nil, func(ctx context.Context) error { return reply(hidden{ctx}) }, total + "\n" + roots + "\nlast: Waiting for the list of roots" + for5s},
		{"a total, and the tool says something else", 5 * time.Second, nil, func(ctx context.Context) error { _ = await(hidden{ctx}); return errors.New("no") },
			total + "\n" + approval + "\nlast: Waiting for approval of rm" + for5s},
		{"a wait that sees the total", 6 * time.Second, nil, await, approval},
		{"a wait that sees the total, after a report", 6 * time.Second, nil, func(ctx context.Context) error { reported(ctx); return await(ctx) }, approval + "\nlast: main.go"},
		{"a deadline that the wait does not show", 0, nil, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return await(hidden{ctx})
		}, total + "\n" + approval + "\nlast: Waiting for approval of rm" + for5s},
		{"the client's own limit", 0, &toolcall.CancelledError{Reason: "Request timed out"}, await,
			"Tool was aborted: the client has cancelled the call: Request timed out\n" + approval + "\nlast: Waiting for approval of rm" + for5s},
		{"a person", 0, &toolcall.CancelledError{Reason: "user pressed Esc"}, await,
			"Tool was aborted: the client has cancelled the call: user pressed Esc\nlast: Waiting for approval of rm" + for5s},
		{"a wait that is over", 40 * time.Second, nil, func(ctx context.Context) error { reported(ctx); _ = await(ctx); <-ctx.Done(); return ctx.Err() },
			strings.Replace(total, "5s", "40s", 1) + "\nlast: main.go"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.cause != nil {
				time.AfterFunc(5*time.Second, func() { cancel(tt.cause) })
			}
			s := &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Total: tt.total}}}
			_, err := toolcall.Do(ctx, s, toolcall.Call{Tool: "rm"}, func(ctx context.Context) (any, error) { return nil, tt.tool(ctx) })
			if got := toolcall.Text(err, ""); got != tt.want {
				t.Errorf("%q\nwant %q", got, tt.want)
			}
		})
	}
}
