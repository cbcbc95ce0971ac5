package toolcall_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// noted is what has been logged.
type noted struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all.String()
}

// SPEC 18.4, guarantee 7: what is enforced where a client says how long it waits, and how often it hears of the call then.
func TestBudget(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name     string
		limits   timeout.Config
		budget   policy.Budget
		outlives bool
		interval time.Duration
		want     timeout.Config
		sent     int64 // in 40 s of beats
	}{
		{"none", timeout.Config{Total: time.Hour}, policy.Budget{}, false, 0, timeout.Config{Total: time.Hour, Grace: timeout.DefaultGrace}, 4},
		{"the default grace", timeout.Config{}, policy.Budget{Left: 3 * time.Minute}, false, 0, timeout.Config{Total: 170 * s, Grace: 5 * s}, 4},
		{"a grace that fits", timeout.Config{Grace: s}, policy.Budget{Left: 3 * time.Minute}, false, 0, timeout.Config{Total: 170 * s, Grace: s}, 4},
		{"no grace", timeout.Config{Grace: -1}, policy.Budget{Left: 3 * time.Minute}, false, 0, timeout.Config{Total: 170 * s, Grace: -1}, 4},
		{"as short as can be", timeout.Config{}, policy.Budget{Left: 1}, false, 0, timeout.Config{Total: 1, Grace: 1}, -1},
		{"a reserve that does not fit", timeout.Config{Reserve: 170 * s, Total: time.Hour, Idle: time.Hour}, policy.Budget{Left: 3 * time.Minute}, false, 0,
			timeout.Config{Total: 170 * s, Idle: 170 * s, Reserve: 85 * s, Grace: 5 * s}, 4},
		{"heard less often than it waits", timeout.Config{}, policy.Budget{Idle: 6 * s}, false, 0, timeout.Config{Idle: 5 * s, Grace: 500 * time.Millisecond}, 8},
		{"heard often", timeout.Config{}, policy.Budget{Idle: 60 * s}, false, 4 * s, timeout.Config{Idle: 50 * s, Grace: 5 * s}, 10},
		{"it outlives its answer", timeout.Config{}, policy.Budget{Left: 60 * s, Idle: 6 * s}, true, 0, timeout.Config{Grace: timeout.DefaultGrace}, 4},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var got timeout.Config
			var sent atomic.Int64
			var log noted
			set := &toolcall.Settings{Policy: &policy.Policy{Default: &tc.limits, Lookup: func(string) (string, bool) { return "", false }}, Interval: tc.interval, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Options: []timeout.Setting{timeout.WithHooks(timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) { got = s.Limits }})}}
			call := toolcall.Call{Token: "t", Outlives: tc.outlives, Meta: map[string]any{policy.BudgetKey: tc.budget.Object()},
				Send: func(context.Context, progress.Notification) error { sent.Add(1); return nil }}
			_, _ = toolcall.Do(t.Context(), set, call, func(ctx context.Context) (int, error) {
				for range 39 {
					heartbeat.Beat(ctx)
					time.Sleep(s)
				}
				return 0, nil
			})
			time.Sleep(time.Minute)                        // for what was abandoned
			if strings.Contains(log.String(), "; using") { // the operator has made no mistake
				t.Error(log.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" || tc.sent >= 0 && sent.Load() != tc.sent {
				t.Errorf("%d notifications: %s", sent.Load(), d)
			}
		})
	}
}

// SPEC 18.4: a budget that cannot be read is ignored, and logged once, by the logger of the settings or else the policy's.
func TestUnreadableBudget(t *testing.T) {
	for _, of := range []string{"settings", "policy", "nobody"} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		set := new(toolcall.Settings)
		switch of {
		case "settings":
			set.Logger = logger
		case "policy":
			set.Policy = &policy.Policy{Logger: logger}
		}
		for i, meta := range []map[string]any{nil, {policy.BudgetKey: map[string]any{"leftMs": 1000.0}}, {policy.BudgetKey: "soon"}, {policy.BudgetKey: "later"}, {policy.BudgetKey: "never"}} {
			_, _ = toolcall.Do(t.Context(), set, toolcall.Call{Meta: meta}, func(ctx context.Context) (any, error) {
				if deadline, _ := ctx.Deadline(); (time.Until(deadline) < time.Second) != (i == 1) {
					t.Errorf("%v: until %v", meta, deadline)
				}
				return nil, nil
			})
			want := 0
			if i > 1 && of != "nobody" {
				want = 1
			}
			if n := strings.Count(log.String(), "is ignored"); n != want {
				t.Errorf("%s, after %v: logged %d times: %s", of, meta, n, log.String())
			}
		}
	}
}

// SPEC 18.4: a stop says that the client has set the limit, to whoever reads the answer, the error or the log. The documented
// sentence stays to the letter.
func TestBudgetIsNamed(t *testing.T) {
	const s = time.Second
	const silence = "No progress for 25s (idle timeout). Tool should call heartbeat() during long work."
	for _, tc := range []struct {
		name   string
		limits timeout.Config
		budget policy.Budget
		heard  bool
		text   string
		log    string
	}{
		{"in all", timeout.Config{Total: time.Hour}, policy.Budget{Left: 60 * s}, false,
			"Tool exceeded wall-clock limit of 50s.\nThe limit is from the client's budget: it waits for 1m0s.", "client_waits=1m0s"},
		{"in silence", timeout.Config{Total: time.Hour, Idle: time.Minute}, policy.Budget{Idle: 30 * s}, true,
			silence + "\nThe limit is from the client's budget: it waits for 30s without progress.", "client_waits_without_progress=30s"},
		{"in silence, unheard", timeout.Config{}, policy.Budget{Left: 60 * s, Idle: 30 * s}, false,
			"Tool exceeded wall-clock limit of 25s.\nThe limit is from the client's budget: it waits for 30s.", "client_waits=30s"},
		{"its own total", timeout.Config{Total: 50 * s}, policy.Budget{Left: 60 * s}, false, "Tool exceeded wall-clock limit of 50s.", ""},
		{"its own silence", timeout.Config{Idle: 25 * s}, policy.Budget{Left: 60 * s}, true, silence, "client_waits=1m0s"},
		{"a nearer deadline", timeout.Config{Total: time.Hour}, policy.Budget{Left: 60 * s}, false, "Tool exceeded wall-clock limit of 20s.", "client_waits=1m0s"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			ctx := t.Context()
			if tc.name == "a nearer deadline" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 20*s)
				defer cancel()
			}
			var log noted
			set := &toolcall.Settings{Limits: &tc.limits, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			call := toolcall.Call{Meta: map[string]any{policy.BudgetKey: tc.budget.Object()}}
			if tc.heard {
				call.Token = "t"
			}
			_, err := toolcall.Do(ctx, set, call, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil })
			if d := cmp.Diff(tc.text, toolcall.Text(err, "")); d != "" {
				t.Error(d)
			}
			named := tc.text != err.Error()
			if cause := err.(*timeout.Error).Cause; (cause != nil && cause != context.DeadlineExceeded) != named {
				t.Errorf("the cause is %v", cause)
			}
			if !strings.Contains(log.String(), tc.log) || tc.log == "" && strings.Contains(log.String(), "client_waits") {
				t.Error(log.String())
			}
		})
	}
}

// SPEC 18.4, 4.6: a hold suspends the silence of a budget, too, since the client may be the one that is asked, and then holds its
// own limit. Where it is not, Await tells it often enough that it waits.
func TestBudgetAndHold(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		wait  func(context.Context)
		heard bool // at least once in the client's silence
	}{
		{"hold", func(ctx context.Context) { defer heartbeat.Hold(ctx)(); time.Sleep(time.Minute) }, false},
		{"await", func(ctx context.Context) {
			_, _ = progress.Await(ctx, "it", progress.Wait{}, func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, nil })
		}, true},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			last, most := time.Now(), time.Duration(0)
			call := toolcall.Call{Token: "t", Meta: map[string]any{policy.BudgetKey: policy.Budget{Left: time.Hour, Idle: 6 * s}.Object()},
				Send: func(context.Context, progress.Notification) error {
					last, most = time.Now(), max(most, time.Since(last))
					return nil
				}}
			_, err := toolcall.Do(t.Context(), &toolcall.Settings{Limits: new(timeout.Config)}, call, func(ctx context.Context) (int, error) { tc.wait(ctx); return 0, nil })
			if most = max(most, time.Since(last)); err != nil || (most < 6*s) != tc.heard {
				t.Errorf("%v, and the client has heard nothing for %v", err, most)
			}
		})
	}
}
