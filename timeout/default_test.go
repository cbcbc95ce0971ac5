package timeout_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The environment is read once in a process, so each case has a process of its own: this test
// again, which runs what the case says and prints it.
const defaultCase = "TIMEOUT_TEST_DEFAULT"

// SPEC 2.5, 2.7: until SetDefault is called, the default is the preset with what the
// environment sets; a policy has the same.
func TestDefaultHonoursTheEnvironment(t *testing.T) {
	if name := os.Getenv(defaultCase); name != "" {
		printDefaults(t, name)
		return
	}
	t.Parallel()
	const refused = `level=WARN msg="the environment cannot be read; the default limits stay in force" error.message="timeout: MCP_TIMEOUT=\"soon\": want ` +
		`seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond"` + "\n"
	for _, tc := range []struct {
		name, do string
		vars     []string
		want     string
	}{
		{"nothing set", "agree", nil, "run 30m0s 2m0s\npolicy 30m0s 2m0s\n"},
		{"both", "agree", []string{"MCP_TIMEOUT=90", "MCP_IDLE_TIMEOUT=0.5"}, "run 1m30s 500ms\npolicy 1m30s 500ms\n"},
		{"total alone", "agree", []string{"MCP_TIMEOUT=3600"}, "run 1h0m0s 2m0s\npolicy 1h0m0s 2m0s\n"},
		{"read once", "later", []string{"MCP_TIMEOUT=90"}, "run 1m30s 1m30s\nrun 1m30s 1m30s\n"},
		{"SetDefault", "set", []string{"MCP_TIMEOUT=90", "MCP_IDLE_TIMEOUT=soon"}, "run 1m0s 30s\n"},
		{"SetDefault later", "set later", []string{"MCP_TIMEOUT=600"}, "run 10m0s 2m0s\nrun 1m0s 30s\n"},
		{"cannot be read", "agree", []string{"MCP_TIMEOUT=soon", "MCP_IDLE_TIMEOUT=5"},
			"run 30m0s 2m0s\n" + `policy: timeout: MCP_TIMEOUT="soon": want seconds as a plain decimal number from 0 (off) to 9223372036, such as 120 or 0.5, no finer than a nanosecond` + "\n"},
		{"cannot be read, logged once", "log", []string{"MCP_TIMEOUT=soon"}, "quiet\nlogged\n" + refused},
		{"doubted, logged once", "log", []string{"MCP_TIMEOUT=120000"}, "quiet\nlogged\n" + `level=WARN msg="` + totalDoubt + "\"\n"},
		{"both doubted", "log", []string{"MCP_TIMEOUT=120000", "MCP_IDLE_TIMEOUT=10000"}, "quiet\nlogged\n" +
			`level=WARN msg="` + totalDoubt + "\"\n" + `level=WARN msg="` + idleDoubt + "\"\n"},
		{"a total below the idle limit, logged once", "log", []string{"MCP_TIMEOUT=60"}, "quiet\nlogged\n" +
			`level=WARN msg="idle timeout 2m0s exceeds total timeout 1m0s; using 1m0s"` + "\n"},
		{"negative, logged once", "log", []string{"MCP_TIMEOUT=-1"}, "quiet\nlogged\n" +
			`level=WARN msg="total timeout -1s is negative; using 0 (no total limit)"` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestDefaultHonoursTheEnvironment$", "-test.count=1")
			cmd.Env = append(cmd.Environ(), defaultCase+"="+tc.do, "GORACE=atexit_sleep_ms=0")
			cmd.Env = append(cmd.Env, tc.vars...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, _, ok := strings.Cut(string(out), "PASS\n")
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func printDefaults(t *testing.T, do string) {
	var log bytes.Buffer
	logger := timeout.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	run := func(opts ...timeout.Option) (limits timeout.Config) {
		err := timeout.RunWithExecutionTimeout(t.Context(), func(ctx context.Context) error {
			limits = timeout.FromContext(ctx).Snapshot().Limits
			return nil
		}, opts...)
		if err != nil {
			t.Error(err)
		}
		return limits
	}
	printRun := func() {
		limits := run()
		fmt.Println("run", limits.Total, limits.Idle)
	}
	switch do {
	case "agree":
		printRun()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			limits := timeout.FromContext(ctx).Snapshot().Limits
			fmt.Println("policy", limits.Total, limits.Idle)
			return nil
		}, new(policy.Policy).For("x", 0)...)
		if err != nil {
			fmt.Println("policy:", err)
		}
	case "later":
		printRun()
		t.Setenv("MCP_TIMEOUT", "7")
		printRun()
	case "set":
		timeout.SetDefault(timeout.FastTools())
		printRun()
	case "set later":
		printRun()
		timeout.SetDefault(timeout.FastTools())
		printRun()
	case "log":
		run()                            // has no logger
		run(logger, timeout.FastTools()) // has limits of its own
		if log.Len() == 0 {
			fmt.Println("quiet")
		}
		run(logger)
		run(logger)
		fmt.Println("logged")
		fmt.Print(log.String())
	default:
		t.Fatalf("no case %q", do)
	}
}
