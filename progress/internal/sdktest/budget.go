package sdktest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// budget tests SPEC 18.4, 18.5: a call is answered, with its partial result, before its client gives up. The tests of
// package toolcall cover what bounds a call if its limits and its budget differ.
func budget(t *testing.T, sdk SDK) {
	for _, tc := range []struct {
		name   string
		budget any
		token  any
		beats  time.Duration // the time between two beats of the tool; 0 means that it does not beat
		deaf   bool          // the tool ignores the end of its context
		after  time.Duration // when the call must be answered
		kind   string
	}{
		{"left", object{"leftMs": 60000}, nil, 0, false, 50 * s, "total"},
		{"silent", object{"leftMs": 1800000, "idleMs": 30000}, "t", 0, false, 25 * s, "idle"},
		{"beating", object{"leftMs": 60000, "idleMs": 30000}, "t", 11 * s, false, 50 * s, "total"},
		{"beating, unheard", object{"leftMs": 60000, "idleMs": 30000}, nil, 10 * s, false, 25 * s, "total"},
		{"a tool that does not return", object{"leftMs": 12000}, nil, 0, true, 11 * s, "total"},
		{"ignored", object{"leftMs": "60000", "idleMs": 30000}, "t", 0, false, time.Hour, "total"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var remaining time.Duration
			over(t, sdk, func() Config {
				return Config{Policy: defaults(timeout.Config{Total: time.Hour, Idle: time.Hour}), Tools: map[string]Tool{"work": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
					remaining, _ = timeout.Remaining(ctx)
					for tc.beats > 0 && Sleep(ctx, tc.beats) == nil {
						heartbeat.Beat(ctx)
					}
					if <-ctx.Done(); tc.deaf {
						time.Sleep(time.Minute)
					}
					return Text("part"), ctx.Err()
				}}}}
			}, func(t *testing.T, p *Peer) {
				token := tc.token
				if p.Mute {
					token = nil
				}
				m := p.call("work", token, object{"_meta": object{policy.BudgetKey: tc.budget}}).wait()
				o := outcome(m.Result)
				if m.Took != tc.after || o["kind"] != tc.kind || m.Result["isError"] != true || tc.deaf != (o["abandoned"] == true) {
					t.Errorf("after %v: %v", m.Took, m)
				}
				if text := strings.Join(texts(m.Result), "\n"); !tc.deaf && !strings.Contains(text, "part") {
					t.Errorf("no partial result: %q", text)
				}
				if tc.kind == "total" && !tc.deaf && remaining != tc.after {
					t.Errorf("%v is left, want %v", remaining, tc.after)
				}
			}, "lines", "HTTP "+New)
		})
	}
}

// budgetOfTasks tests SPEC 18.4: the budget bounds the time of the answer, and not the task. A call that can become a
// task or a continuation does so and is not stopped.
func budgetOfTasks(t *testing.T, sdk SDK) {
	bounds := object{"_meta": object{policy.BudgetKey: object{"leftMs": 30000}}}
	t.Run("task", func(t *testing.T) {
		withTasks(t, sdk, nil, func(t *testing.T, p *Peer, _ *workshop) {
			m := p.call("work", nil, object{"arguments": object{"what": "it"}, "_meta": bounds["_meta"]}).wait()
			if m.Took != 25*s {
				t.Errorf("%v after %v", m, m.Took)
			}
			id := p.handle(m)["taskId"]
			time.Sleep(time.Minute)
			if task := p.get(id); task["status"] != "completed" {
				t.Error(task)
			}
		}, "lines "+New, "HTTP "+New)
	})
	t.Run("continuation", func(t *testing.T) {
		continued(t, sdk, false, func(t *testing.T, p *Peer, _ *workshop) {
			begun := time.Since(p.begun)
			m := p.call("never", nil, object{"arguments": object{"what": "it"}, "_meta": bounds["_meta"]}).wait()
			id := continuedID(t, m, "wait_for_result")
			if m.Took != 25*s || !strings.HasPrefix(texts(m.Result)[0], "Still running after 25s.") {
				t.Errorf("%v after %v", m, m.Took)
			}
			for _, at := range []time.Duration{50 * s, time.Minute} { // each call of the wait tool has the same budget
				m = p.call("wait_for_result", nil, object{"arguments": object{"id": id}, "_meta": bounds["_meta"]}).wait()
				if took := m.At - begun; took < at || took > at+5*ms {
					t.Errorf("%v after %v, want %v", m, took, at)
				}
			}
			if texts(m.Result)[0] != "done it" {
				t.Errorf("%v", m)
			}
		}, "lines", "HTTP "+New)
	})
	t.Run("silence", func(t *testing.T) { // progress renews idleMs, so a call that sends progress is continued later
		continued(t, sdk, false, func(t *testing.T, p *Peer, _ *workshop) {
			for tool, want := range map[string]time.Duration{"steps": 30 * s, "never": 22 * s} {
				m := p.call(tool, tool, object{"_meta": object{policy.BudgetKey: object{"leftMs": 1800000, "idleMs": 26400}}}).wait()
				continuedID(t, m, "wait_for_result")
				if m.Took != want || !strings.HasPrefix(texts(m.Result)[0], fmt.Sprintf("Still running after %vs.", want.Seconds())) {
					t.Errorf("%s: %v after %v, want %v", tool, m, m.Took, want)
				}
			}
			time.Sleep(5 * time.Minute)
		}, "lines", "HTTP "+New)
	})
}

// budgetSent tests SPEC 18.4: a client with limits sends a budget with each tools/call, and with no other request. A
// client without limits sends none.
func budgetSent(t *testing.T, sdk SDK) {
	renewed := request.Limits{Timeout: 30 * s, MaxTotal: 30 * time.Minute, ResetOnProgress: true}
	for _, tc := range []struct {
		name   string
		limits request.Limits
		under  timeout.Config // the limits of the execution that sends the request, 10 s after its start
		own    any            // the budget in the caller's _meta, or nil
		want   any            // the budget that the server must receive, or nil
	}{
		{"no limits", request.Limits{}, timeout.Config{}, nil, nil},
		{"limits", renewed, timeout.Config{}, nil, object{"leftMs": 1800000.0, "idleMs": 30000.0}},
		{"not renewed", request.Limits{Timeout: 30 * s}, timeout.Config{}, nil, object{"leftMs": 30000.0}},
		{"within a tool", renewed, timeout.Config{Total: time.Minute, Idle: 20 * s}, nil, object{"leftMs": 50000.0, "idleMs": 20000.0}},
		{"passed on", renewed, timeout.Config{}, object{"leftMs": 20000}, object{"leftMs": 20000.0, "idleMs": 30000.0}},
	} {
		both(t, tc.name, func(t *testing.T, version string) {
			var seen []any
			c := new(Script).dial(t, sdk, ClientConfig{Limits: tc.limits, Version: version}, func(r *Asked) {
				if meta, _ := r.Params["_meta"].(object); r.Method == "tools/call" {
					seen = append(seen, meta[policy.BudgetKey])
					r.answer(`{"content":[{"type":"text","text":"done"}]}`)
				} else if r.answer(`{"tools":[]}`); meta[policy.BudgetKey] != nil {
					t.Errorf("with %s: %v", r.Method, meta)
				}
			})
			meta := object{"mine": 1.0}
			if tc.own != nil {
				meta[policy.BudgetKey] = tc.own
			}
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				time.Sleep(10 * s)
				if _, err := c.Request(ctx, "tools/list"); err != nil {
					return err
				}
				_, err := c.Call(ctx, "work", nil, meta)
				return err
			}, tc.under)
			synctest.Wait()
			if d := cmp.Diff([]any{tc.want}, seen); d != "" || err != nil || meta["mine"] != 1.0 || !cmp.Equal(meta[policy.BudgetKey], tc.own) {
				t.Error(err, meta, d)
			}
		})
	}
}

// chain tests SPEC 18.4: a client calls a server, whose tool calls a nested server, whose tool runs an execution. Each
// has limits of its own. The innermost execution is stopped first, each answers with its partial result, and nothing
// takes longer than the client would have waited.
func chain(t *testing.T, sdk SDK) {
	limited := func(l request.Limits) ClientConfig {
		return ClientConfig{PerMethod: map[string]request.Limits{"tools/call": l}, Version: Old}
	}
	for _, tc := range []struct {
		name                             string
		client, outer, nested, innermost timeout.Config
		stopped                          []string // the tools that a limit stops
		answered                         time.Duration
		text                             string
	}{
		{"the client is the shortest", timeout.Config{Total: time.Minute}, timeout.Config{Total: 30 * time.Minute}, timeout.Config{Total: time.Hour}, timeout.Config{Total: 2 * time.Hour},
			[]string{"innermost", "nested"}, 50*s*5/6 + 2, "row 4"},
		{"what runs there is the shortest", timeout.Config{Total: time.Minute}, timeout.Config{Total: 30 * time.Minute}, timeout.Config{Total: time.Hour}, timeout.Config{Total: 15 * s},
			[]string{"innermost"}, 15 * s, "row 1"},
		{"the nested server is", timeout.Config{Total: time.Minute}, timeout.Config{Total: 30 * time.Minute}, timeout.Config{Total: 25 * s}, timeout.Config{Total: time.Hour},
			[]string{"innermost", "nested"}, 25*s + 2, "row 2"},
		{"the outer server is", timeout.Config{Total: time.Hour}, timeout.Config{Total: 30 * s}, timeout.Config{Total: time.Hour}, timeout.Config{Total: time.Hour},
			[]string{"innermost", "nested"}, 25*s + 2, "row 2"},
	} {
		Bubble(t, tc.name, func(t *testing.T) {
			var ended, stopped []string
			hooks := func(who string) timeout.Hooks {
				return timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
					if ended = append(ended, who); !s.Returned {
						stopped = append(stopped, who)
					}
				}}
			}
			rows := 0
			nested := sdk.NewServer(Config{Policy: defaults(tc.nested), Hooks: hooks("nested"), Tools: map[string]Tool{"rows": {
				Run: func(ctx context.Context, _ *Call) (*Result, error) {
					err := timeout.Run(ctx, func(ctx context.Context) error {
						for Sleep(ctx, 10*s) == nil {
							rows++
							heartbeat.Beat(ctx)
						}
						return ctx.Err()
					}, tc.innermost, timeout.WithHooks(hooks("innermost")))
					time.Sleep(time.Nanosecond) // so that the order of the ends is defined
					return Text(fmt.Sprint("row ", rows)), err
				},
			}}})
			within := sdk.NewClient(limited(request.Limits{Timeout: time.Hour, MaxTotal: time.Hour, ResetOnProgress: true}))
			defer meet(t, within, nested)()
			outer := sdk.NewServer(Config{Policy: defaults(tc.outer), Hooks: hooks("outer"), Tools: map[string]Tool{"report": {
				Run: func(ctx context.Context, _ *Call) (*Result, error) {
					res, err := within.Call(ctx, "rows", nil, nil)
					if err != nil {
						return nil, err
					}
					time.Sleep(time.Nanosecond)
					return res, nil
				},
			}}})
			config := limited(request.Limits{MaxTotal: tc.client.Total})
			config.Hooks = hooks("client")
			c := sdk.NewClient(config)
			defer meet(t, c, outer)()
			begun := time.Now()
			res, err := c.Call(t.Context(), "report", nil, nil)
			took := time.Since(begun).Round(2)
			if err != nil || !res.IsError || !strings.Contains(strings.Join(res.Texts, "\n"), tc.text) {
				t.Errorf("%+v, %v", res, err)
			}
			if d := cmp.Diff([]string{"innermost", "nested", "outer", "client"}, ended); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.stopped, stopped); d != "" || took/ms != tc.answered/ms {
				t.Errorf("after %v, want %v: %s", took, tc.answered, d)
			}
		})
	}
}
