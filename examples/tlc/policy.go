package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A tool is one way to use the checker.
type tool struct {
	name   string
	model  string // where none is given
	search search
}

// A search that is slow, because its states are big, must still report well within the
// idle limit, so the reports are frequent. Only what is shown of them is not.
const reportEvery = 10_000

var tools = map[string]tool{
	"check":   {"tlc_check", "correct", search{depth: 1_000_000, complete: true, reportEvery: reportEvery}},
	"smoke":   {"tlc_smoke", "correct", search{depth: 100, reportEvery: reportEvery}},
	"explore": {"tlc_explore", "huge", search{depth: 1_000_000, bitstate: true, reportEvery: reportEvery}},
}

// limitsOfTools has the limits of all tools in one place; the tools themselves know nothing of
// them. All are stopped when they are silent for 2 minutes. The total is the first that is
// given of these: that of the request, up to MaxTotal; that of the environment; the one below.
func limitsOfTools(logger *slog.Logger) *policy.Policy {
	return &policy.Policy{
		Tools: map[string]policy.Tool{
			"tlc_check": {Limits: &timeout.Config{Idle: 2 * time.Minute}}, // however long, while there is progress
			"tlc_smoke": {
				Limits:   &timeout.Config{Total: 120_000 * time.Millisecond, Idle: 2 * time.Minute},
				Env:      "TLC_SMOKE", // which is TLC_SMOKE_TIMEOUT_MS
				MaxTotal: 10 * time.Minute,
			},
			"tlc_explore": {
				Limits:   &timeout.Config{Total: 600_000 * time.Millisecond, Idle: 2 * time.Minute},
				Env:      "TLC_EXPLORE",
				MaxTotal: time.Hour,
			},
		},
		Logger: logger,
	}
}

// A caller says how a tool is called.
type caller struct {
	policy  *policy.Policy
	request time.Duration // the total that is asked for; 0 is none
	every   time.Duration // between two lines of progress
}

// call runs the tool as the policy says. No more is needed: the context of the function
// carries the limits and the heartbeat to every command that runs under it.
//
// There is a finding even if the tool was stopped: the results until then. A setting or a
// request that makes no sense is a *timeout.ConfigError, and nothing is run.
func (t tool) call(ctx context.Context, by caller, c *checker, m model, out *printer) (finding, error) {
	begun := time.Now()
	opts := append(by.policy.For(t.name, by.request), timeout.WithHooks(timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) {
		out.start(s.Tool, m, s.Limits)
	}}))
	f, err := timeout.Do(ctx, func(ctx context.Context) (finding, error) {
		// The progress that the checker reports is shown, but not more often than this.
		defer out.beginProgress()()
		var shown string
		defer heartbeat.Relay(ctx, by.every, func(_ context.Context, e heartbeat.Event) {
			if at := progress.UpdateOf(e.Detail).Message; at != "" && at != shown { // a beat may have no news
				out.progress(time.Since(begun), at)
				shown = at
			}
		})()
		return c.check(ctx, m, t.search, out)
	}, opts...)
	f.elapsed = time.Since(begun)
	return f, err
}

// parseRequest reads the limit that a request asks for.
func parseRequest(s string) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms < 1 || ms > most {
		return 0, errors.New("want milliseconds as a whole number from 1 to " + strconv.FormatInt(most, 10))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// newLogger returns a logger for warnings, such as that of a request above the ceiling.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}
