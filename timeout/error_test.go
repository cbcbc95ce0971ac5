package timeout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// What an abort says. The texts of limits, byte for byte, are a rule of TestSimulation.
func TestMessages(t *testing.T) {
	for _, tc := range []struct {
		cause error
		want  string
	}{
		{nil, "Tool was aborted."},
		{context.Canceled, "Tool was aborted."},
		{errCaller, "Tool was aborted: the caller has had enough"},
	} {
		if e := (&timeout.Error{Kind: timeout.ErrAborted, Cause: tc.cause}); e.Error() != tc.want {
			t.Errorf("got %s, want %s", e, tc.want)
		}
	}
}

// SPEC 6.29 and 8.10. Each text names what was stopped, for every operation. A command keeps the texts of a tool but
// for its silence: those of package procgroup stand beside them.
func TestSubjects(t *testing.T) {
	subjects := map[timeout.Operation]string{
		timeout.OperationTool: "Tool", timeout.OperationCommand: "Tool", timeout.OperationHandler: "Handler", timeout.OperationRequest: "Request",
	}
	for o := timeout.Operation(0); !strings.HasPrefix(o.String(), "Operation("); o++ {
		figures := timeout.Figures{Operation: o}
		for name, e := range map[string]*timeout.Error{
			"total":   {Kind: timeout.ErrTotal, Limit: time.Second, Figures: figures},
			"needed":  {Kind: timeout.ErrTotal, Limit: time.Second, Needed: time.Minute, Figures: figures},
			"aborted": {Kind: timeout.ErrAborted, Figures: figures},
			"cause":   {Kind: timeout.ErrAborted, Cause: errCaller, Figures: figures},
		} {
			if subject, _, _ := strings.Cut(e.Error(), " "); subject != subjects[o] {
				t.Errorf("%v, %s: %q begins with %q, want %q", o, name, e, subject, subjects[o])
			}
		}
		idle := (&timeout.Error{Kind: timeout.ErrIdle, Limit: time.Second, Figures: figures}).Error()
		if o != timeout.OperationTool && strings.Contains(idle, "Tool") {
			t.Errorf("%v: %q speaks of a tool", o, idle)
		}
	}
}

func TestLogValue(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&buf, nil))
	log.Error("x", "err", &timeout.Error{
		Kind:      timeout.ErrIdle,
		Figures:   timeout.Figures{Tool: "search", Elapsed: 5 * time.Second, SinceBeat: 2 * time.Second, LongestGap: 3 * time.Second, Beats: 9, Stack: []byte("goroutine 1")},
		Limit:     2 * time.Second,
		Abandoned: true,
		Err:       errTool,
		Cause:     errCaller,
	})
	var got struct{ Err map[string]any }
	if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"message": "No progress for 2s (idle timeout). Tool should call heartbeat() during long work.",
		"kind":    "idle", "exit_code": 124.0, "limit": 2e9, "elapsed": 5e9, "since_beat": 2e9, "longest_gap": 3e9,
		"beats": 9.0, "abandoned": true, "tool": "search", "error": "tool failed", "cause": "the caller has had enough",
	}
	if diff := cmp.Diff(want, got.Err); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// SPEC 3.4: the Kind that a function returned is none of the outcome's, and is found as nothing else.
func TestKindOfTheFunction(t *testing.T) {
	for _, own := range []timeout.Kind{timeout.ErrIdle, timeout.ErrTotal, timeout.ErrAborted} {
		for _, e := range []*timeout.Error{{Kind: timeout.ErrTotal, Err: own}, {Kind: timeout.ErrTotal, Cause: fmt.Errorf("lost: %w", own)}} {
			var found timeout.Kind
			if errors.As(e, &found) && found != e.Kind {
				t.Errorf("%+v: errors.As finds %v", e, found)
			}
			if got := errors.Is(e, own); got != (own == e.Kind) {
				t.Errorf("%+v: errors.Is finds %v: %v", e, own, got)
			}
		}
	}
}

// SPEC 3.19: every error names the tool, and no other verb than %+v shows it.
func TestErrorsNameTheTool(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	named := timeout.WithName("scan")
	limit := timeout.Config{Total: time.Millisecond}
	_, badConfig := new(policy.Policy).Resolve("scan", -time.Second)
	for _, tc := range []struct {
		name string
		err  error
		tool func(error) string
		text string
	}{
		{"timeout", timeout.Run(context.Background(), func(ctx context.Context) error { <-ctx.Done(); return nil }, named, limit),
			func(err error) string { return err.(*timeout.Error).Tool }, "Tool exceeded wall-clock limit of 0.001s."},
		{"never started", timeout.Run(canceled, func(context.Context) error { return nil }, named),
			func(err error) string { return err.(*timeout.Error).Tool }, "Tool was aborted."},
		{"panic", timeout.Run(context.Background(), func(context.Context) error { panic("boom") }, named, timeout.WithRecover()),
			func(err error) string { return err.(*timeout.PanicError).Tool }, "panic: boom"},
		{"goexit", timeout.Run(context.Background(), func(context.Context) error { runtime.Goexit(); return nil }, named),
			nil, "timeout: the function called runtime.Goexit"},
		{"configuration", badConfig,
			func(err error) string { return err.(*timeout.ConfigError).Tool }, `timeout: timeoutMs="-1000": want a positive whole number of milliseconds`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.tool == nil {
				// it has no type of its own to look into
			} else if got := tc.tool(tc.err); got != "scan" {
				t.Errorf("Tool is %q", got)
			}
			long := fmt.Sprintf("%+v", tc.err)
			if !strings.HasPrefix(long, tc.text+" [tool scan") {
				t.Errorf("%%+v is %s", long)
			}
			for _, format := range []string{"%v", "%s"} {
				if got := fmt.Sprintf(format, tc.err); got != tc.text {
					t.Errorf("%s is %s", format, got)
				}
			}
			if got, want := fmt.Sprintf("%q %60s|", tc.err, tc.err), fmt.Sprintf("%q %60s|", tc.text, tc.text); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := fmt.Sprintf("%#v", tc.err); !strings.Contains(got, `Tool:"scan"`) {
				t.Errorf("%%#v is %s", got)
			}
			var buf bytes.Buffer
			slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "err", tc.err)
			if !strings.Contains(buf.String(), " err.tool=scan") || strings.Contains(buf.String(), "goroutine") {
				t.Errorf("log: %s", buf.String())
			}
		})
	}
	// Without a name there is nothing to say.
	unnamed := timeout.Run(context.Background(), func(context.Context) error { runtime.Goexit(); return nil })
	if got := fmt.Sprintf("%+v", unnamed); got != timeout.ErrGoexit.Error() {
		t.Errorf("%s", got)
	}
}

// Measured times are written as a person writes them.
func TestRoundedFormat(t *testing.T) {
	err := &timeout.Error{Kind: timeout.ErrAborted, Figures: timeout.Figures{Elapsed: 90*time.Second + 1234567, SinceBeat: 1404717294, LongestGap: 12345678, Detail: 1.4047172940000001}}
	if got, want := fmt.Sprintf("%+v", err), "Tool was aborted. [elapsed 1m30.001s; since beat 1.405s; longest gap 12.3ms; beats 0; last: 1.405]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, v := range []slog.LogValuer{err, timeout.Snapshot{Figures: timeout.Figures{Elapsed: err.Elapsed, SinceBeat: err.SinceBeat, LongestGap: err.LongestGap, Detail: err.Detail}, Held: err.LongestGap}} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		for _, want := range []string{"v.elapsed=1m30.001s", "v.since_beat=1.405s", "v.longest_gap=12.3ms", "v.last=1.405"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in %s", want, log.String())
			}
		}
	}
}

func TestLongFormat(t *testing.T) {
	got := fmt.Sprintf("%+v", &timeout.Error{
		Kind:      timeout.ErrIdle,
		Figures:   timeout.Figures{Tool: "scan", Elapsed: 90 * time.Second, SinceBeat: time.Minute, LongestGap: time.Minute, Beats: 12, Detail: "file 37 of 100", Stalls: 1, Stack: []byte("goroutine 7 [select]:")},
		Limit:     time.Minute,
		Abandoned: true,
		Err:       errTool,
		Cause:     errCaller,
	})
	want := "No progress for 60s (idle timeout). Tool should call heartbeat() during long work." +
		" [tool scan; elapsed 1m30s; since beat 1m0s; longest gap 1m0s; beats 12; stalls 1; last: file 37 of 100; abandoned; returned: tool failed; cause: the caller has had enough]" +
		"\n\ngoroutine 7 [select]:"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// SPEC 3.7: an error that cannot be compared is found, and compares with nothing.
func TestUncomparableErrors(t *testing.T) {
	e := &timeout.Error{Kind: timeout.ErrAborted, Err: uncomparable{}, Cause: uncomparable{}}
	for _, inner := range e.Unwrap() {
		_ = errors.Is(e, inner)
	}
	if errors.Is(e, errTool) || !errors.As(e, new(uncomparable)) {
		t.Error("errors.Is or errors.As is wrong")
	}
}

func TestKindText(t *testing.T) {
	for kind, want := range map[timeout.Kind]string{timeout.ErrIdle: "idle", timeout.ErrTotal: "total", timeout.ErrAborted: "aborted", 0: "Kind(0)"} {
		if kind.Error() != want {
			t.Errorf("%s, want %s", kind, want)
		}
	}
}
