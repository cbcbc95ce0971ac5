package progress_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.9: the limit of a wait depends on whether the client hears of it. It is exact to the
// nanosecond.
func TestAwaitLimits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		token any
		after time.Duration // how long the call has been running
		opts  progress.Wait
		want  time.Duration // 0: none
	}{
		{"no token", nil, 0, progress.Wait{}, 30 * s},
		{"a token", "t", 0, progress.Wait{}, 120 * s},
		{"a token that is 0", 0, 0, progress.Wait{}, 120 * s},
		{"a token that is none", true, 0, progress.Wait{}, 30 * s},
		{"given, no token", nil, 0, progress.Wait{Limit: 45 * s, ProgressLimit: 10 * time.Minute}, 45 * s},
		{"given, a token", "t", 0, progress.Wait{Limit: 45 * s, ProgressLimit: 10 * time.Minute}, 10 * time.Minute},
		{"one given, no token", nil, 0, progress.Wait{ProgressLimit: 10 * time.Minute}, 30 * s},
		{"one given, a token", "t", 0, progress.Wait{Limit: 45 * s}, 120 * s},
		{"none without a token", nil, 0, progress.Wait{Limit: -1, ProgressLimit: 1}, 0},
		{"none with a token", "t", 0, progress.Wait{Limit: 1, ProgressLimit: -1}, 0},
		{"what a host leaves", nil, 0, progress.Wait{HostLimit: 60 * s}, 58 * s},
		{"what a host leaves late", nil, 40 * s, progress.Wait{HostLimit: 60 * s}, 18 * s},
		{"what a host leaves too late", nil, 59 * s, progress.Wait{HostLimit: 60 * s}, 1},
		{"a host that is not known", nil, 40 * s, progress.Wait{HostLimit: 0}, 30 * s},
		{"a host, a token", "t", 40 * s, progress.Wait{HostLimit: 60 * s}, 120 * s},
		{"a host, a smaller limit", nil, 0, progress.Wait{HostLimit: 60 * s, Limit: 20 * s}, 20 * s},
		{"a host, a larger limit", nil, 10 * s, progress.Wait{HostLimit: 60 * s, Limit: 50 * s}, 48 * s},
		{"a host, no limit", nil, 0, progress.Wait{HostLimit: 60 * s, Limit: -1}, 58 * s},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			for _, within := range []bool{false, true} { // another execution of the tool's
				call(t, tc.token, 0, func(ctx context.Context) {
					time.Sleep(tc.after)
					begun := time.Now()
					run := func(ctx context.Context) error {
						_, err := progress.Await(ctx, "rm", tc.opts, person(2*time.Hour))
						return err
					}
					var err error
					if within {
						err = timeout.Run(ctx, run, timeout.Config{})
					} else {
						err = run(ctx)
					}
					if took := time.Since(begun); tc.want > 0 && (took != tc.want || !errors.Is(err, progress.ErrNoAnswer)) ||
						tc.want == 0 && (took != 2*time.Hour || err != errDenied) {
						t.Errorf("%v after %v, want %v", err, took, tc.want)
					}
				})
			}
		})
	}
}

// SPEC 7.9: keep-alives come as often as configured, and no two are equal, whatever else beats.
func TestKeepAlives(t *testing.T) {
	constant := func(string, time.Duration, time.Duration) string { return "waiting" }
	for _, tc := range []struct {
		name  string
		every time.Duration // between two notifications
		beat  time.Duration // of another goroutine of the tool; 0 means none
		opts  progress.Wait
		want  []string
	}{
		{"the default", 0, 0, progress.Wait{},
			[]string{"0s Waiting for approval of rm (up to 2m0s)", "10s Waiting for approval of rm (10s so far, 1m50s left)", "20s Waiting for approval of rm (20s so far, 1m40s left)", "30s Waiting for approval of rm (30s so far, 1m30s left)"}},
		{"15 s", 0, 0, progress.Wait{KeepAlive: 15 * s},
			[]string{"0s Waiting for approval of rm (up to 2m0s)", "15s Waiting for approval of rm (15s so far, 1m45s left)", "30s Waiting for approval of rm (30s so far, 1m30s left)"}},
		{"none", 0, 0, progress.Wait{KeepAlive: -1}, []string{"0s Waiting for approval of rm (up to 2m0s)"}},
		{"no limit", 0, 0, progress.Wait{KeepAlive: 15 * s, Limit: -1, ProgressLimit: -1},
			[]string{"0s Waiting for approval of rm", "15s Waiting for approval of rm (15s so far)", "30s Waiting for approval of rm (30s so far)"}},
		{"others beat", 0, 3 * s, progress.Wait{KeepAlive: time.Hour},
			[]string{"0s Waiting for approval of rm (up to 2m0s)", "10s Waiting for approval of rm (10s so far, 1m50s left)", "20s Waiting for approval of rm (20s so far, 1m40s left)", "30s Waiting for approval of rm (30s so far, 1m30s left)"}},
		{"others beat often", 250 * time.Millisecond, 30 * s, progress.Wait{KeepAlive: 12500 * time.Millisecond},
			[]string{"0s Waiting for approval of rm (up to 2m0s)", "12.5s Waiting for approval of rm (12s so far, 1m48s left)", "25s Waiting for approval of rm (25s so far, 1m35s left)", "30s Waiting for approval of rm (30s so far, 1m30s left)"}},
		{"words", 0, 0, progress.Wait{KeepAlive: 15 * s, Words: func(what string, elapsed, left time.Duration) string { return what + elapsed.String() + left.String() }},
			[]string{"0s approval of rm0s2m0s", "15s approval of rm15s1m45s", "30s approval of rm30s1m30s"}},
		{"words that do not change", 0, 0, progress.Wait{KeepAlive: 15 * s, Words: constant},
			[]string{"0s waiting", "15s waiting (after 15s)", "30s waiting"}},
		{"words that panic", 0, 0, progress.Wait{KeepAlive: -1, Words: func(string, time.Duration, time.Duration) string { panic("no words") }},
			[]string{"0s Waiting for approval of rm (up to 2m0s)"}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			c := call(t, "t", tc.every, func(ctx context.Context) {
				if tc.beat > 0 {
					go func() {
						for {
							select {
							case <-time.After(tc.beat):
								heartbeat.Beat(ctx)
							case <-ctx.Done():
								return
							}
						}
					}()
				}
				_, _ = progress.Await(ctx, "rm", tc.opts, person(31*s))
			})
			var got []string
			for _, n := range c.notes {
				got = append(got, n.At.String()+" "+n.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 7.9: the text for the person may be long; the message has the times all the same, even if it is
// cut.
func TestAwaitLongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		what := strings.Repeat("é", 200)
		c := call(t, "t", 0, func(ctx context.Context) {
			_, _ = progress.Await(ctx, what, progress.Wait{}, func(context.Context) (int, error) {
				time.Sleep(20*s + 1)
				got := progress.UpdateOf(heartbeat.FromContext(ctx).Detail()).Message
				if !strings.HasSuffix(got, "é... (20s so far, 1m40s left)") {
					t.Errorf("%q", got)
				}
				return 0, nil
			})
		})
		for _, n := range c.notes {
			if len(n.Message) > 256 || !strings.HasSuffix(n.Message, ")") {
				t.Errorf("%d bytes: %q", len(n.Message), n.Message)
			}
		}
	})
}

// SPEC 7.10: a reply of the client that is no approval has words of its own, and the idle check is held.
func TestAwaitReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expiry error
		c := call(t, "t", 0, func(ctx context.Context) {
			expiry = timeout.Run(ctx, func(ctx context.Context) error {
				synctest.Wait() // for the notification of the start
				_, err := progress.AwaitReply(ctx, "an answer of the model", progress.Wait{Limit: 30 * s, ProgressLimit: 15 * s}, person(time.Hour))
				return err
			}, timeout.Config{Idle: 5 * s})
		})
		c.want(t, note{}, note{10 * s, 1e-6, 0, "Waiting for an answer of the model (10s so far, 5s left)"})
		const want = "Command timed out waiting for an answer of the model. Consider configuring a longer timeout."
		if expiry == nil || expiry.Error() != want || !errors.Is(expiry, progress.ErrNoAnswer) || timeout.ExitCode(expiry) != timeout.ExitTimeout {
			t.Errorf("%v", expiry)
		}
	})
}

// SPEC 7.9: what keeps two messages apart is a time as a person reads it.
func TestRepeatedWordsHaveARoundTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call(t, "t", -1, func(ctx context.Context) {
			_, _ = progress.Await(ctx, "rm", progress.Wait{Words: func(string, time.Duration, time.Duration) string { return "waiting" }}, func(context.Context) (int, error) {
				for _, d := range []time.Duration{419476, 300 * time.Millisecond, 1100*time.Millisecond + 419476, 700*time.Millisecond + 1} {
					time.Sleep(d)
					heartbeat.Beat(ctx)
					synctest.Wait()
				}
				return 0, nil
			})
		}).want(t, note{0, 0, 0, "waiting"}, note{419476, 1e-6, 0, "waiting (after 1ms)"}, note{300419476, 2e-6, 0, "waiting"},
			note{1400838952, 3e-6, 0, "waiting (after 1s)"}, note{2100838953, 4e-6, 0, "waiting"})
	})
}
