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

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// declares returns the _meta in which a server declares limits.
func declares(d policy.Declaration) object {
	data, _ := json.Marshal(d)
	var o object
	_ = json.Unmarshal(data, &o)
	return object{policy.DeclarationKey: o}
}

// useDeclared tests SPEC 10.2: a client uses the limits that its server declares, up to the client's ceiling. The tests
// of package request cover what follows from a declaration.
func useDeclared(t *testing.T, sdk SDK) {
	const grace, margin = s, s
	for _, tc := range []struct {
		name      string
		ceiling   request.Limits
		perMethod map[string]request.Limits
		unlisted  bool
		nameless  bool          // the only listed tool has no name
		answer    time.Duration // when the server answers; 0 means never
		after     time.Duration // when the request must time out; 0 means that it must not
	}{
		{name: "an answer in the grace", answer: 3*time.Minute + grace + margin - 1},
		{name: "not listed, so the server's", unlisted: true, after: 20*s + grace + margin},
		{name: "not listed beside a tool without a name", nameless: true, after: 20*s + grace + margin},
		{name: "idle", after: 3*time.Minute + grace + margin},
		{name: "the ceiling", ceiling: request.Limits{Timeout: time.Minute}, after: time.Minute},
		{name: "the user's own", perMethod: map[string]request.Limits{"tools/*": {Timeout: 7 * s}}, after: 7 * s},
	} {
		both(t, tc.name, func(t *testing.T, version string) {
			sc := &Script{
				extras: object{"extensions": declares(policy.Declaration{Idle: 20 * s, Grace: grace})},
				tools: []object{{"name": "tool", "inputSchema": object{"type": "object"},
					"_meta": declares(policy.Declaration{Idle: 3 * time.Minute, Total: time.Hour, Grace: grace, Progress: 10 * s})}},
			}
			if tc.nameless {
				sc.tools = []object{{"name": "", "inputSchema": object{"type": "object"}}}
			}
			c := sc.dial(t, sdk, ClientConfig{Limits: request.Limits{Timeout: 5 * s}, PerMethod: tc.perMethod, UseDeclared: &tc.ceiling, Version: version}, func(r *Asked) {
				if tc.answer > 0 && r.until(tc.answer) {
					r.answer(`{"content":[]}`)
				}
			})
			if !tc.unlisted {
				if _, err := c.Request(t.Context(), "tools/list"); err != nil {
					t.Fatal(err)
				}
			}
			begun := time.Now()
			_, err := c.Call(t.Context(), "tool", nil, nil)
			if tc.after == 0 && err != nil {
				t.Errorf("%v after %v", err, time.Since(begun))
			} else if tc.after > 0 {
				if e := timedOut(t, sdk, err, "tools/call"); e.Kind != timeout.ErrIdle || e.Elapsed != tc.after {
					t.Errorf("%v after %v, want %v", e.Kind, e.Elapsed, tc.after)
				}
			}
		})
	}
}

// declaredMethods tests SPEC 10.3: a client without limits of its own for a method uses the limits that the server
// declares for it.
func declaredMethods(t *testing.T, sdk SDK) {
	const margin = s
	for _, tc := range []struct {
		name      string
		perMethod map[string]request.Limits
		ceiling   request.Limits
		after     time.Duration
	}{
		{"declared", nil, request.Limits{}, 20*s + margin},
		{"under the ceiling", nil, request.Limits{MaxTotal: 9 * s}, 9 * s},
		{"the user's own", map[string]request.Limits{"tools/*": {MaxTotal: 7 * s}}, request.Limits{}, 7 * s},
	} {
		Bubble(t, tc.name, func(t *testing.T) {
			srv := sdk.NewServer(Config{Methods: map[string]policy.Declaration{"tools/list": {Total: 20 * s}}, Tools: map[string]Tool{"hang": {Run: wait}},
				Lists: func(ctx context.Context) { <-ctx.Done() }})
			c := sdk.NewClient(ClientConfig{Version: Old, Limits: request.Limits{Timeout: time.Hour}, PerMethod: tc.perMethod, UseDeclared: &tc.ceiling})
			end := meet(t, c, srv)
			begun := time.Now()
			_, err := c.Request(t.Context(), "tools/list")
			if timedOut(t, sdk, err, "tools/list"); time.Since(begun) != tc.after {
				t.Errorf("after %v, want %v", time.Since(begun), tc.after)
			}
			end()
		})
	}
}

// meet connects a client to a server over lines. end closes both.
func meet(t testing.TB, c Client, srv Server) (end func()) {
	t.Helper()
	in, out := NewPipe(), NewPipe()
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { served <- srv.Serve(ctx, in, out, 0) }()
	if err := c.Connect(context.Background(), out, in); err != nil {
		t.Fatal(err)
	}
	return func() {
		c.Close()
		_, _ = in.Close(), out.Close()
		stop()
		<-served
		srv.Close()
		time.Sleep(time.Hour)
	}
}

// retry tests SPEC 3.11, 8.5: a request whose method is named in Retry is sent again, under a new id. A call of a tool is
// not, because the tool is not listed. The end of the caller's context ends the tries, during a try and between two.
func retry(t *testing.T, sdk SDK) {
	gone := errors.New("gone")
	all := []string{"*"}
	for _, tc := range []struct {
		name    string
		methods []string
		method  string
		fails   int // the number of tries that time out
		want    []time.Duration
		after   time.Duration // when the caller's context ends; 0 means never
		cause   error         // of that end; nil means that a deadline ends the context
		err     error         // nil means that the request is answered
	}{
		{"not named", []string{}, "tools/list", 1, []time.Duration{0}, 0, nil, timeout.ErrIdle},
		{"named", []string{"tools/list"}, "tools/list", 1, []time.Duration{0, 12 * s}, 0, nil, nil},
		{"pattern", []string{"tools/*"}, "tools/list", 3, []time.Duration{0, 12 * s, 26 * s, 44 * s}, 0, nil, nil},
		{"in vain", all, "resources/read", 4, []time.Duration{0, 12 * s, 26 * s, 44 * s}, 0, nil, timeout.ErrIdle},
		{"tool call", []string{"*", "tools/call"}, "tools/call", 1, []time.Duration{0}, 0, nil, timeout.ErrIdle},
		{"gone in the first try", all, "tools/list", 9, []time.Duration{0}, 5 * s, gone, gone},
		{"gone between two", all, "tools/list", 9, []time.Duration{0}, 11 * s, gone, gone},
		{"gone in the second try", all, "tools/list", 9, []time.Duration{0, 12 * s}, 13 * s, gone, gone},
		{"deadline in a try", all, "tools/list", 9, []time.Duration{0}, 5 * s, nil, context.DeadlineExceeded},
		{"deadline between two", all, "tools/list", 9, []time.Duration{0}, 11 * s, nil, context.DeadlineExceeded},
	} {
		Bubble(t, tc.name, func(t *testing.T) {
			var got []time.Duration
			ids := map[string]bool{}
			sc := new(Script)
			c := sc.dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: 10 * s}, Retry: tc.methods}, func(r *Asked) {
				if r.Method == tc.method {
					got = append(got, time.Since(sc.begun))
					if ids[string(r.ID)] = true; len(got) > tc.fails {
						r.answer(`{"tools":[],"contents":[],"content":[],"ttlMs":0,"cacheScope":"private"}`)
					}
				}
			})
			ctx, cancel := ending(t.Context(), tc.after, tc.cause)
			defer cancel()
			err := ask(ctx, c, tc.method)
			exit := map[error]int{nil: 0, gone: timeout.ExitAborted, timeout.ErrIdle: timeout.ExitTimeout, context.DeadlineExceeded: timeout.ExitTimeout}[tc.err]
			if !errors.Is(err, tc.err) || errors.Is(err, context.Canceled) != (tc.err == gone) || timeout.ExitCode(err) != exit || tc.after > 0 && time.Since(sc.begun) != tc.after {
				t.Errorf("%v after %v", err, time.Since(sc.begun))
			}
			synctest.Wait()
			if d := cmp.Diff(tc.want, got); d != "" || len(ids) != len(got) {
				t.Error(d, ids)
			}
			if tc.err == timeout.ErrIdle {
				timedOut(t, sdk, err, tc.method)
			}
		})
	}
	Bubble(t, "error", func(t *testing.T) { // an error from the server ends the tries
		tries := 0
		c := new(Script).dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: 10 * s}, Retry: all}, func(r *Asked) {
			tries++
			r.fault(-32603, "no")
		})
		if _, err := c.Request(t.Context(), "resources/read"); err == nil || tries != 1 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

// retryToolCall tests SPEC 8.8: a tools/call is sent again, with the same idempotency key, if Retry names the method
// and the listed annotations of the tool permit it.
func retryToolCall(t *testing.T, sdk SDK) {
	call := []string{"tools/call"}
	for _, tc := range []struct {
		name     string
		methods  []string
		tool     string
		unlisted bool
		changed  bool // the server has reported that its tools have changed since they were listed
		key      string
		tries    int
	}{
		{"idempotent", call, "idempotent", false, false, "", 3},
		{"reads", call, "reads", false, false, "", 3},
		{"the caller's key", call, "reads", false, false, "own", 3},
		{"writes", call, "writes", false, false, "", 1},
		{"not listed", call, "idempotent", true, false, "", 1},
		{"changed", call, "idempotent", false, true, "", 1},
		{"not asked for", []string{"tools/*", "*"}, "idempotent", false, false, "", 1},
	} {
		both(t, tc.name, func(t *testing.T, version string) {
			if tc.changed && (version == New || !sdk.ForgetsHints) {
				return
			}
			schema := object{"type": "object"}
			sc := &Script{tools: []object{{"name": "idempotent", "inputSchema": schema, "annotations": object{"idempotentHint": true}},
				{"name": "reads", "inputSchema": schema, "annotations": object{"readOnlyHint": true}}, {"name": "writes", "inputSchema": schema}}}
			var keys []any
			c := sc.dial(t, sdk, ClientConfig{Version: version, Limits: request.Limits{Timeout: 10 * s}, Retry: tc.methods, OnChanged: func() {}}, func(r *Asked) {
				if r.Method != "tools/call" {
					return
				}
				meta, _ := r.Params["_meta"].(object)
				if keys = append(keys, meta[request.IdempotencyKey]); len(keys) == 3 {
					r.answer(`{"content":[{"type":"text","text":"done"}]}`)
				}
			})
			if !tc.unlisted {
				if _, err := c.Request(t.Context(), "tools/list"); err != nil {
					t.Fatal(err)
				}
			}
			if tc.changed {
				sc.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				time.Sleep(s)
			}
			var meta map[string]any
			if tc.key != "" {
				meta = map[string]any{request.IdempotencyKey: tc.key}
			}
			res, err := c.Call(t.Context(), tc.tool, nil, meta)
			synctest.Wait()
			if tc.tries == 1 {
				if timedOut(t, sdk, err, "tools/call"); keys[0] != nil {
					t.Errorf("a call that is not sent again has the key %v", keys[0])
				}
			} else if err != nil || res.Texts[0] != "done" {
				t.Errorf("%v, %v", res, err)
			}
			if len(keys) != tc.tries {
				t.Errorf("%d tries, want %d", len(keys), tc.tries)
			}
			for _, key := range keys[1:] {
				if key != keys[0] || key == "" || key == nil || tc.key != "" && key != tc.key {
					t.Errorf("keys %v", keys)
				}
			}
		})
	}
}

// idempotency tests SPEC 8.8: a server answers a repeated call with the result of the first, unless the first was
// aborted; then the tool runs again.
func idempotency(t *testing.T, sdk SDK) {
	runs := 0
	over(t, sdk, func() Config {
		runs = 0
		return Config{Idempotency: true, Policy: new(policy.Policy), Tools: map[string]Tool{"slow": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
			runs++
			n := runs
			return Text(fmt.Sprint("run ", n)), Sleep(ctx, time.Minute)
		}}}}
	}, func(t *testing.T, p *Peer) {
		call := func(key string) *Exchange {
			return p.call("slow", nil, object{"_meta": object{request.IdempotencyKey: key}})
		}
		x := call("k")
		time.Sleep(s)
		x.cancel("the client has given up")
		time.Sleep(s)
		first := call("k")
		time.Sleep(s)
		for _, x := range []*Exchange{first, call("k"), call("k")} {
			if m := x.wait(); texts(m.Result)[0] != "run 2" {
				t.Errorf("%v", m)
			}
		}
		if m := call("another").wait(); texts(m.Result)[0] != "run 3" || runs != 3 {
			t.Errorf("%d runs: %v", runs, m)
		}
		short := object{"_meta": object{request.IdempotencyKey: "short", policy.BudgetKey: object{"leftMs": 6000}}}
		if m := p.call("slow", nil, short).wait(); outcome(m.Result)["kind"] != "total" { // SPEC 18.4
			t.Error(m)
		}
		if m := call("short").wait(); texts(m.Result)[0] != "run 5" {
			t.Errorf("stopped for its client, and then: %v", m)
		}
		long := call("long")
		time.Sleep(s)
		begun := time.Now()
		hasty := p.call("slow", nil, object{"_meta": object{request.IdempotencyKey: "long", policy.BudgetKey: object{"leftMs": 6000}}}).wait()
		if took := time.Since(begun); took != 5*time.Second || !strings.Contains(hasty.String(), "repeat it later") { // SPEC 18.4
			t.Errorf("a repetition with less time, after %v: %v", took, hasty)
		}
		if m := long.wait(); texts(m.Result)[0] != "run 6" {
			t.Error(m)
		}
	}, "lines", "HTTP "+Old, "HTTP "+New)
}
