package oteltimeout_test

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.24: the span of a command that package procgroup runs has the outcome that its caller is
// told.
func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a POSIX shell")
	}
	limits := timeout.Config{Idle: 300 * time.Millisecond, Grace: 5 * time.Second}
	run := func(ctx context.Context, cmd *exec.Cmd, opts ...procgroup.Option) error {
		_, err := procgroup.Run(ctx, cmd, append(opts, procgroup.WithOptions(timeout.WithName("sh")))...)
		return err
	}
	for name, tc := range map[string]struct {
		run         func(context.Context) error
		class, code any
	}{
		"success":  {func(ctx context.Context) error { return run(ctx, exec.Command("true")) }, nil, int64(0)},
		"an error": {func(ctx context.Context) error { return run(ctx, exec.Command("sh", "-c", "exit 3")) }, "command_error", int64(3)},
		"a signal": {func(ctx context.Context) error { return run(ctx, exec.Command("sh", "-c", "kill -9 $$")) }, "command_error", nil},
		"not found": {func(ctx context.Context) error {
			return run(ctx, exec.Command("/no/such/program"))
		}, "command_error", nil},
		"its limit": {func(ctx context.Context) error {
			return run(ctx, exec.Command("sleep", "60"), procgroup.Limits(limits))
		}, "idle_timeout", nil},
		"what it wrote": {func(ctx context.Context) error {
			return run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), procgroup.Capture{Limit: 6})
		}, "too_much_output", nil},
		"an enclosing limit": {func(ctx context.Context) error { // which has no name, and no span
			return timeout.Run(ctx, func(ctx context.Context) error { return run(ctx, exec.Command("sleep", "60")) }, limits)
		}, "idle_timeout", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := watch(t)
			err := tc.run(t.Context())
			if (err != nil) != (tc.class != nil) || errors.Is(err, timeout.ErrIdle) != (tc.class == "idle_timeout") {
				t.Errorf("the caller is told %v", err)
			}
			checkCommand(t, c, tc.class, tc.code)
		})
	}
}

func checkCommand(t *testing.T, c *collector, class, code any) {
	t.Helper()
	span := c.only()
	if span.Name != "sh" || span.SpanKind != trace.SpanKindClient {
		t.Errorf("%q, %v", span.Name, span.SpanKind)
	}
	got := attributesOf(span.Attributes)
	for _, key := range []string{"tooldeadline.limit.idle", "tooldeadline.beats", "tooldeadline.longest_silence"} {
		delete(got, key)
	}
	want := map[string]any{"process.executable.name": "sh"}
	measured := map[string]any{"process.executable.name": "sh"}
	if class != nil {
		want["error.type"], measured["error.type"] = class, class
	}
	if code != nil {
		want["process.exit.code"] = code
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	for _, name := range []string{"tooldeadline.command.duration", "tooldeadline.execution.longest_silence"} {
		p := c.points(name)
		if len(p) != 1 || p[0].Count != 1 {
			t.Fatalf("%s: %v", name, p)
		}
		if diff := cmp.Diff(measured, p[0].Attributes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if p := c.points("gen_ai.execute_tool.duration"); p != nil {
		t.Errorf("it is measured as a tool: %v", p)
	}
}
