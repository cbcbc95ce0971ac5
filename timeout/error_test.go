package timeout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.1, 3.2, 3.3: byte for byte.
func TestMessages(t *testing.T) {
	const (
		idle  = "No progress for %ss (idle timeout). Tool should call heartbeat() during long work."
		total = "Tool exceeded wall-clock limit of %ss."
	)
	for limit, text := range map[time.Duration]string{
		120 * time.Second:        "120",
		500 * time.Millisecond:   "0.5",
		90250 * time.Millisecond: "90.25",
		1800 * time.Second:       "1800",
		time.Nanosecond:          "0.000000001",
		10 * time.Microsecond:    "0.00001",
		time.Minute + 1:          "60.000000001",
		math.MaxInt64:            "9223372036.854775807",
		0:                        "0",
	} {
		for kind, format := range map[timeout.Kind]string{timeout.Idle: idle, timeout.Total: total} {
			e := &timeout.Error{Kind: kind, Limit: limit, Tool: "x", Err: errTool, Abandoned: true}
			if want := fmt.Sprintf(format, text); e.Error() != want {
				t.Errorf("got  %s\nwant %s", e, want)
			}
		}
	}
	for _, tc := range []struct {
		cause error
		want  string
	}{
		{nil, "Tool was aborted."},
		{context.Canceled, "Tool was aborted."},
		{errCaller, "Tool was aborted: the caller has had enough"},
	} {
		if e := (&timeout.Error{Kind: timeout.Aborted, Cause: tc.cause}); e.Error() != tc.want {
			t.Errorf("got %s, want %s", e, tc.want)
		}
	}
}

// Every direction that an error can be asked, also through wrapping and Join.
func TestErrorMatching(t *testing.T) {
	targets := map[string]error{
		"ErrIdle": timeout.ErrIdle, "ErrTotal": timeout.ErrTotal, "ErrAborted": timeout.ErrAborted,
		"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
	}
	for kind, yes := range map[timeout.Kind]string{
		timeout.Idle:    "ErrIdle DeadlineExceeded",
		timeout.Total:   "ErrTotal DeadlineExceeded",
		timeout.Aborted: "ErrAborted Canceled",
	} {
		// What a function makes of its cancelled context must not change the answer.
		for name, own := range map[string]error{
			"nothing":          nil,
			"its own":          errTool,
			"canceled":         context.Canceled,
			"deadline":         context.DeadlineExceeded,
			"wrapped canceled": fmt.Errorf("reading: %w", context.Canceled),
			"inner abort":      &timeout.Error{Kind: timeout.Aborted, Err: errTool},
			"inner total":      &timeout.Error{Kind: timeout.Total},
			"inner idle":       errors.Join(&timeout.Error{Kind: timeout.Idle}, io.EOF),
		} {
			e := &timeout.Error{Kind: kind, Err: own}
			for wrap, err := range map[string]error{
				"bare":    e,
				"wrapped": fmt.Errorf("tool: %w", e),
				"joined":  errors.Join(io.ErrUnexpectedEOF, e),
				"deep":    fmt.Errorf("a: %w", errors.Join(fmt.Errorf("b: %w", e), io.EOF)),
			} {
				for target, sentinel := range targets {
					want := strings.Contains(" "+yes+" ", " "+target+" ")
					if got := errors.Is(err, sentinel); got != want {
						t.Errorf("%v, function's error %s, %s: errors.Is %s is %v", kind, name, wrap, target, got)
					}
				}
				var as *timeout.Error
				if !errors.As(err, &as) || as != e {
					t.Errorf("%v %s %s: errors.As finds %v", kind, name, wrap, as)
				}
				var timeouter interface{ Timeout() bool }
				if !errors.As(err, &timeouter) || timeouter.Timeout() != (kind != timeout.Aborted) {
					t.Errorf("%v %s %s: Timeout()", kind, name, wrap)
				}
			}
		}
	}
	// What is the function's stays reachable (SPEC 3.7).
	own := &json.SyntaxError{Offset: 7}
	err := fmt.Errorf("x: %w", &timeout.Error{Kind: timeout.Idle, Err: fmt.Errorf("y: %w", errors.Join(own, io.EOF))})
	var syntax *json.SyntaxError
	if !errors.Is(err, io.EOF) || !errors.As(err, &syntax) || syntax != own {
		t.Errorf("the function's error is lost: %v", syntax)
	}
}

func TestLogValue(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&buf, nil))
	log.Error("x", "err", &timeout.Error{
		Kind: timeout.Idle, Tool: "search", Limit: 2 * time.Second, Elapsed: 5 * time.Second, SinceBeat: 2 * time.Second,
		LongestGap: 3 * time.Second, Beats: 9, Abandoned: true, Stack: []byte("goroutine 1"), Err: errTool, Cause: errCaller,
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

func TestKindString(t *testing.T) {
	for kind, want := range map[timeout.Kind]string{timeout.Idle: "idle", timeout.Total: "total", timeout.Aborted: "aborted", 0: "Kind(0)"} {
		if kind.String() != want {
			t.Errorf("%s, want %s", kind, want)
		}
	}
}
