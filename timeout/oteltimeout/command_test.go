//go:build unix

package oteltimeout_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/oteltimeout"
)

// SPEC 6.24: the span and the metrics of a command say what Wait returns, where all tools are
// watched and where the command alone has the hooks.
func TestCommands(t *testing.T) {
	const idle = "No progress for 0.3s (idle timeout). Tool should call heartbeat() during long work."
	within := func(limits timeout.Config) func(func(context.Context)) {
		return func(run func(context.Context)) {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error { run(ctx); return nil }, limits) // without a name it has no span
		}
	}
	for _, tc := range []struct {
		name, script string
		run          func(func(context.Context)) // nil is with the background
		class, text  string
	}{
		{"success", "exit 0", nil, "", ""},
		{"exit 3", "exit 3", nil, "tool_error", "exit status 3"},
		{"a foreign signal", "kill -9 $$", nil, "tool_error", "signal: killed"},
		{"an enclosing idle limit", "sleep 60", within(timeout.Config{Idle: 300 * time.Millisecond}), "idle_timeout", idle},
		{"an enclosing total", "sleep 60", within(timeout.Config{Total: 300 * time.Millisecond}), "total_timeout", "Tool exceeded wall-clock limit of 0.3s."},
	} {
		for _, watched := range []bool{true, false} {
			name := tc.name + ", with hooks of its own"
			if watched {
				name = tc.name + ", watched"
			}
			t.Run(name, func(t *testing.T) {
				options := []timeout.Option{timeout.WithName("build")}
				c := collect(t)
				if hooks, err := oteltimeout.Hooks(c.options...); err != nil {
					t.Fatal(err)
				} else if watched {
					defer timeout.Watch(hooks)()
				} else {
					options = append(options, timeout.WithHooks(hooks))
				}
				var err error
				run := func(ctx context.Context) {
					_, err = procgroup.Run(ctx, exec.Command("sh", "-c", tc.script), procgroup.WithOptions(options...))
				}
				if tc.run == nil {
					run(context.Background())
				} else {
					tc.run(run)
				}
				span := c.only()
				status := sdktrace.Status{}
				labels := map[string]any{"gen_ai.tool.name": "build"}
				if tc.class != "" {
					status = sdktrace.Status{Code: codes.Error, Description: tc.text}
					labels["error.type"] = tc.class
				}
				if diff := cmp.Diff(status, span.Status); diff != "" || span.Name != "execute_tool build" {
					t.Errorf("%q %s", span.Name, diff)
				}
				if class, _ := attributesOf(span.Attributes)["error.type"].(string); class != tc.class {
					t.Errorf("error.type is %q, want %q", class, tc.class)
				}
				if (err == nil) != (tc.class == "") || err != nil && err.Error() != tc.text {
					t.Errorf("Wait returns %v", err)
				}
				if all := c.points("gen_ai.execute_tool.duration"); len(all) != 1 || !cmp.Equal(labels, all[0].Attributes) {
					t.Errorf("measured %+v, want %v", all, labels)
				}
				if all := c.points("tooldeadline.tool.running"); len(all) != 1 || all[0].Sum != 0 {
					t.Errorf("running are %+v", all)
				}
			})
		}
	}
}
