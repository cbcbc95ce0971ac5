package toolcall_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Only the execution of a call begins with it: not one within, nor one in Started or later.
func TestStarting(t *testing.T) {
	var got []string
	see := func(at string) func(context.Context) {
		return func(ctx context.Context) {
			name := "-"
			if c := toolcall.Starting(ctx); c != nil {
				name = fmt.Sprint(c.Tool, c.Meta)
			}
			got = append(got, at+" "+name)
		}
	}
	defer timeout.Watch(timeout.Hooks{
		Context: func(ctx context.Context, s timeout.Snapshot) context.Context {
			see("context " + s.Tool)(ctx)
			return ctx
		},
		Started: func(ctx context.Context, s timeout.Snapshot) { see("started " + s.Tool)(ctx) },
	})()
	meta := map[string]any{"traceparent": "00"}
	_ = timeout.Run(t.Context(), func(ctx context.Context) error {
		_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "outer", Meta: meta}, func(ctx context.Context) (int, error) {
			see("within")(ctx)
			return 0, timeout.Run(ctx, func(ctx context.Context) error {
				_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: "inner"}, func(context.Context) (int, error) { return 0, nil })
				return err
			}, timeout.WithName("step"))
		})
		return err
	}, timeout.WithName("around"))
	if diff := cmp.Diff([]string{
		"context around -", "started around -",
		"context outer outermap[traceparent:00]", "started outer -", "within -",
		"context step -", "started step -",
		"context inner innermap[]", "started inner -",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A hook finds what the client has sent with the call.
func ExampleStarting() {
	hooks := timeout.Hooks{Context: func(ctx context.Context, s timeout.Snapshot) context.Context {
		if call := toolcall.Starting(ctx); call != nil {
			fmt.Println(call.Tool, call.Meta["traceparent"])
		}
		return ctx
	}}
	server := &toolcall.Settings{Options: []timeout.Setting{timeout.WithHooks(hooks)}}
	call := toolcall.Call{Tool: "search", Meta: map[string]any{"traceparent": "00-1-2-01"}}
	_, _ = toolcall.Do(context.Background(), server, call, func(context.Context) (string, error) { return "", nil })
	// Output:
	// search 00-1-2-01
}
