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

// A command is no tool: its span and its metrics are those of a program that another one calls.
func TestCommandOutcomes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a POSIX shell")
	}
	shell := func(line string) func(context.Context) error {
		return func(context.Context) error { return exec.Command("sh", "-c", line).Run() }
	}
	for name, tc := range map[string]struct {
		run   func(context.Context) error
		class any
		code  any
	}{
		"success":     {shell("exit 0"), nil, int64(0)},
		"an error":    {shell("exit 3"), "command_error", int64(3)},
		"a signal":    {shell("kill -9 $$"), "command_error", nil},
		"not started": {func(context.Context) error { return exec.ErrNotFound }, "command_error", nil},
		"aborted": {func(ctx context.Context) error {
			timeout.FromContext(ctx).Abort(errors.New("enough"))
			return exec.Command("sh", "-c", "exit 3").Run()
		}, "aborted", nil},
		"another's abort": {func(ctx context.Context) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				timeout.FromContext(ctx).Abort(nil)
				return ctx.Err()
			})
		}, "command_error", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := watch(t)
			_ = timeout.Run(t.Context(), tc.run, timeout.NoLimits(), timeout.WithName("sh"), timeout.WithOperation(timeout.OperationCommand))
			checkCommand(t, c, tc.class, tc.code)
		})
	}
}

// A command that package procgroup runs is one.
func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs sleep")
	}
	c := watch(t)
	_, err := procgroup.Run(t.Context(), exec.Command("sleep", "60"), procgroup.WithOptions(timeout.WithName("sh")),
		procgroup.WithLimits(timeout.Config{Idle: 200 * time.Millisecond, Grace: time.Second}))
	if !errors.Is(err, timeout.ErrIdle) {
		t.Fatal(err)
	}
	checkCommand(t, c, "idle_timeout", nil)
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
