package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// increases fails the test unless the progress of each notification is larger than that of the notification before.
func increases(t testing.TB, all []Message) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i].Params["progress"].(float64) <= all[i-1].Params["progress"].(float64) {
			t.Errorf("%s after %s", all[i].Raw, all[i-1].Raw)
		}
	}
}

// intervals tests SPEC 7.1, 7.2, 7.3: the first update is sent at once, then the newest update every interval, and the
// last update at the end. Progress increases even if the tool reports the same value again. Without a token nothing is
// sent.
func intervals(t *testing.T, sdk SDK) {
	for _, tc := range []struct {
		name     string
		token    any
		interval time.Duration
		want     []string
	}{
		{"every 10 s", "t", 0, []string{"0s step 0", "10s step 11", "20s step 22", "23.4s step 25"}},
		{"every 4 s", 7.0, 4 * s, []string{"0s step 0", "4s step 4", "8s step 8", "12s step 13", "16s step 17", "20s step 22", "23.4s step 25"}},
		{"no token", nil, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			over(t, sdk, func() Config {
				return Config{Policy: defaults(timeout.Config{Idle: 2 * s}), Interval: tc.interval, Tools: map[string]Tool{"count": {
					Run: func(ctx context.Context, _ *Call) (*Result, error) {
						for i := range 26 { // never at the instant at which an interval ends
							progress.Report(ctx, progress.Update{Progress: float64(i / 15), Total: 25, Message: fmt.Sprint("step ", i)})
							time.Sleep(900 * ms)
						}
						return Text("done"), nil
					},
				}}}
			}, func(t *testing.T, p *Peer) {
				begun := time.Since(p.begun)
				m := p.call("count", tc.token, nil).wait()
				time.Sleep(time.Hour)
				synctest.Wait()
				all := p.progress(tc.token)
				// The answer follows the last notification after 5 ms.
				if p.Mute {
					if len(all) > 0 {
						t.Errorf("%+v", all)
					}
					return
				}
				if increases(t, all); m.Took-23400*ms > 5*ms || len(p.heard("notifications/progress")) != len(all) {
					t.Errorf("answered after %v", m.Took)
				}
				var got []string
				for _, n := range all {
					got = append(got, fmt.Sprint(n.At-begun, " ", n.Params["message"]))
					if n.Params["total"] != 25.0 {
						t.Errorf("%s", n.Raw)
					}
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// silence tests SPEC 7.6: a tool that does not beat sends nothing, and the progress of a plain beat shows no work.
func silence(t *testing.T, sdk SDK) {
	over(t, sdk, func() Config {
		return Config{Policy: unlimited(), Tools: map[string]Tool{"once": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
			time.Sleep(time.Minute)
			heartbeat.Beat(ctx)
			time.Sleep(time.Minute)
			return Text("done"), nil
		}}}}
	}, func(t *testing.T, p *Peer) {
		if p.Mute {
			return
		}
		begun := time.Since(p.begun)
		p.call("once", "t", nil).wait()
		synctest.Wait()
		all := p.heard("notifications/progress")
		if len(all) != 1 || all[0].At-begun != time.Minute || all[0].Params["progress"] != 0.0 && all[0].Params["progress"] != 1.0/1e6 || all[0].Params["message"] != nil {
			t.Errorf("%+v", all)
		}
	})
}

// tokens tests SPEC 7.1: a progress token is returned exactly as it was received, even an integer above 2^53.
func tokens(t *testing.T, sdk SDK) {
	all := []string{`"t1"`, `""`, `"9007199254740993"`, `"\u2028<&>\"\\"`, `0`, `42`, `-7`, `9007199254740992`, `9007199254740993`, `-9007199254740993`,
		`9223372036854775807`, `18446744073709551617`, "1" + strings.Repeat("0", 21), strings.Repeat("123456789", 11) + "1"}
	over(t, sdk, func() Config {
		return Config{Tools: map[string]Tool{"beats": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
			heartbeat.Beat(ctx)
			time.Sleep(s)
			return Text("done"), nil
		}}}}
	}, func(t *testing.T, p *Peer) {
		for _, token := range all {
			before := len(p.heard("notifications/progress"))
			if m := p.call("beats", json.RawMessage(token), nil).wait(); m == nil || m.Error != nil {
				t.Fatalf("%s: %+v", token, m)
			}
			for _, n := range p.heard("notifications/progress")[before:] {
				var params struct{ ProgressToken json.RawMessage }
				var text, want any
				if err := json.Unmarshal(n.Raw, &struct{ Params any }{&params}); err != nil {
					t.Fatal(err)
				}
				if same := string(params.ProgressToken) == token; !same && token[0] == '"' {
					_, _ = json.Unmarshal(params.ProgressToken, &text), json.Unmarshal([]byte(token), &want)
					if text == want {
						continue
					}
					t.Errorf("%s is echoed as %s", token, params.ProgressToken)
				} else if !same {
					t.Errorf("%s is echoed as %s", token, params.ProgressToken)
				}
			}
			if len(p.heard("notifications/progress")) == before && !p.Mute {
				t.Errorf("%s: no progress", token)
			}
		}
		// A client cannot use the key with which the adapters carry a token to get the progress of another call.
		for _, forged := range []string{`"9007199254740995"`, `"12"`, `9007199254740993`, `"x"`, `null`} {
			p.call("beats", json.RawMessage(`9007199254740992`), object{"_meta": object{"io.github.tooldeadline/progressToken": json.RawMessage(forged)}}).wait()
		}
		for _, n := range p.heard("notifications/progress")[len(p.heard("notifications/progress"))-map[bool]int{false: 5}[p.Mute]:] {
			if !strings.Contains(string(n.Raw), `"progressToken":9007199254740992`) {
				t.Errorf("%s", n.Raw)
			}
		}
	})
}

// manyCalls tests SPEC 7.1, 7.2: 100 calls in one session at the same time each get the progress of their own token
// only.
func manyCalls(t *testing.T, sdk SDK) {
	over(t, sdk, func() Config {
		return Config{Tools: map[string]Tool{"echo": {Run: func(ctx context.Context, c *Call) (*Result, error) {
			for i := range 3 {
				progress.Report(ctx, progress.Update{Progress: float64(i), Message: fmt.Sprint(c.Token)})
				time.Sleep(s)
			}
			return Text(fmt.Sprint(c.Token)), nil
		}}}}
	}, func(t *testing.T, p *Peer) {
		var all []*Exchange
		for i := range 100 {
			all = append(all, p.call("echo", fmt.Sprint("token-", i), nil))
		}
		for i, x := range all {
			token := fmt.Sprint("token-", i)
			if m := x.wait(); m == nil || texts(m.Result)[0] != token {
				t.Errorf("%s: %+v", token, m)
			}
			notes := p.progress(token)
			if increases(t, notes); len(notes) != 2 {
				t.Errorf("%s: %d notifications", token, len(notes))
			}
			for _, n := range notes {
				if n.Params["message"] != token {
					t.Errorf("%s", n.Raw)
				}
			}
		}
	}, "lines", "HTTP "+Old)
}

// hidden is a context that does not show its deadline.
type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

// lastDetail tests SPEC 7.7: the text of the result has the newest detail, whichever error the handler returns.
func lastDetail(t *testing.T, sdk SDK) {
	const (
		idle = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
		last = "\nlast: file 37 of 100"
	)
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	await := func(ctx context.Context) error {
		_, err := progress.Await(ctx, "rm -r build", progress.Wait{}, func(ctx context.Context) (bool, error) { return false, wait(ctx) })
		return err
	}
	nested := func(total time.Duration) func(ctx context.Context) error {
		return func(ctx context.Context) error { return timeout.Run(ctx, wait, timeout.Config{Total: total}) }
	}
	for _, tc := range []struct {
		name string
		fail func(ctx context.Context) error
		want string
	}{
		{"ctx.Err", wait, idle + last},
		{"context.Cause", func(ctx context.Context) error { _ = wait(ctx); return context.Cause(ctx) }, idle + last},
		{"wrapped cause", func(ctx context.Context) error { _ = wait(ctx); return fmt.Errorf("%w, sadly", context.Cause(ctx)) }, idle + last},
		{"joined", func(ctx context.Context) error { return errors.Join(wait(ctx), errors.New("disk is full")) }, idle + last},
		{"nested Run", nested(time.Minute), idle + last},
		{"wrapped nested Run", func(ctx context.Context) error { return fmt.Errorf("search: %w", nested(time.Minute)(ctx)) }, idle + last},
		{"nested Run with a limit of its own", nested(s), "Tool exceeded wall-clock limit of 1s." + last},
		{"wrapped nested Run with a limit of its own", func(ctx context.Context) error { return fmt.Errorf("search: %w", nested(s)(ctx)) },
			"search: Tool exceeded wall-clock limit of 1s." + last},
		{"Await", await, progress.ErrNoAnswer.Error() + last},
		{"wrapped Await", func(ctx context.Context) error { return fmt.Errorf("delete: %w", await(ctx)) }, "delete: " + progress.ErrNoAnswer.Error() + last},
		{"Await that was cut short", func(ctx context.Context) error {
			return timeout.Run(ctx, func(ctx context.Context) error { return await(hidden{ctx}) }, timeout.Config{Total: 3 * s})
		}, "Tool exceeded wall-clock limit of 3s.\n" + progress.ErrNoAnswer.Error() + "\nlast: Waiting for approval of rm -r build (3s so far, 27s left)"},
	} {
		tool := func(ctx context.Context) error {
			progress.Report(ctx, progress.Update{Message: "file", Progress: 37, Total: 100})
			return tc.fail(ctx)
		}
		p := defaults(timeout.Config{Idle: 5 * s})
		forms := map[string]func() Server{
			"raw": func() Server {
				return sdk.NewServer(Config{Policy: p, Tools: map[string]Tool{"search": {Run: func(ctx context.Context, _ *Call) (*Result, error) { return nil, tool(ctx) }}}})
			},
			"SetResult": func() Server {
				return sdk.NewServer(Config{Policy: p, Tools: map[string]Tool{"search": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
					err := tool(ctx)
					if ctx.Err() != nil {
						err = context.Cause(ctx)
					}
					return sdk.SetResult(err, ""), nil
				}}}})
			},
		}
		for form, add := range sdk.Forms {
			forms[form] = func() Server { return add("search", p, tool) }
		}
		for form, server := range forms {
			if form == "SetResult" && strings.HasSuffix(tc.name, "a limit of its own") {
				continue // the adapter does not see that error
			}
			Bubble(t, tc.name+"/"+form, func(t *testing.T) {
				p := Dial(t, server(), Ways[0])
				m := p.call("search", nil, nil).wait()
				if m.Error != nil {
					t.Fatalf("%s", m.Raw)
				}
				// The text of the tool's own error may follow, in another content or in the first.
				if d := cmp.Diff(tc.want, strings.Replace(texts(m.Result)[0], ", sadly", "", 1)); d != "" || m.Result["isError"] != true {
					t.Error(d)
				}
			})
		}
	}
}
