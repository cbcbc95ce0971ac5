package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Sleep waits for the given time, or for the end of ctx, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func texts(res object) (all []string) {
	content, _ := res["content"].([]any)
	for _, c := range content {
		text, _ := c.(object)["text"].(string)
		all = append(all, text)
	}
	return all
}

func metaOf(res object, key string) object {
	meta, _ := res["_meta"].(object)
	value, _ := meta[key].(object)
	return value
}

func outcome(res object) object { return metaOf(res, toolcall.OutcomeKey) }

// results tests SPEC 2.6, 3.1, 3.2, 3.9, 3.13, 7.7, 7.11: the result of each way in which a tool can end, its exact
// time, and the error that hooks get.
func results(t *testing.T, sdk SDK) {
	const (
		idleText  = "No progress for 90.25s (idle timeout). Tool should call heartbeat() during long work."
		totalText = "Tool exceeded wall-clock limit of 120s."
	)
	idle, total := timeout.Config{Idle: 90250 * ms}, timeout.Config{Total: 2 * time.Minute}
	idleOutcome := object{"kind": "idle", "exitCode": 124.0, "limitMs": 90250.0, "idleMs": 90250.0, "totalMs": 0.0}
	wait := func(ctx context.Context, _ *Call) (*Result, error) { <-ctx.Done(); return nil, ctx.Err() }
	shared := &Result{Texts: []string{"two of three files"}, Structured: object{"files": 2.0}, Meta: object{"k": "v"}} // by several calls
	part := func(ctx context.Context, _ *Call) (*Result, error) { <-ctx.Done(); return shared, nil }
	returns := func(after time.Duration) func(context.Context, *Call) (*Result, error) {
		return func(ctx context.Context, _ *Call) (*Result, error) { return Text("done"), Sleep(ctx, after) }
	}
	for _, tc := range []struct {
		name    string
		limits  timeout.Config
		run     func(ctx context.Context, c *Call) (*Result, error)
		want    []string
		outcome object
		after   time.Duration
	}{
		{"returns", total, returns(0), []string{"done"}, nil, 0},
		{"beats for longer than its idle limit", idle, func(ctx context.Context, _ *Call) (*Result, error) {
			for range 3 {
				if err := Sleep(ctx, 90250*ms-1); err != nil {
					return nil, err
				}
				heartbeat.Beat(ctx)
			}
			return Text("done"), nil
		}, []string{"done"}, nil, 3 * (90250*ms - 1)},
		{"with a tenth left", total, returns(108 * s), []string{"done"}, nil, 108 * s},
		{"with less left", total, returns(108*s + ms), []string{"done"}, object{"kind": "returned", "exitCode": 0.0, "limitMs": 0.0, "totalMs": 120e3, "idleMs": 0.0, "leftMs": 11999.0}, 108*s + ms}, // SPEC 7.11
		{"failed", total, func(context.Context, *Call) (*Result, error) {
			return &Result{IsError: true, Texts: []string{"no such file"}}, nil
		}, []string{"no such file"}, nil, 0},
		{"idle", idle, wait, []string{idleText}, idleOutcome, 90250 * ms},
		{"total", total, wait, []string{totalText}, object{"kind": "total", "exitCode": 124.0, "limitMs": 120e3, "totalMs": 120e3, "idleMs": 0.0, "leftMs": 0.0}, 2 * time.Minute},
		{"partial output", idle, part, []string{idleText, "two of three files"}, idleOutcome, 90250 * ms},
		{"its own words", idle, func(ctx context.Context, _ *Call) (*Result, error) {
			<-ctx.Done()
			return sdk.SetResult(context.Cause(ctx), "half of it"), nil
		}, []string{idleText + "\n\nPartial output:\nhalf of it"}, idleOutcome, 90250 * ms},
		{"deaf", idle, func(ctx context.Context, _ *Call) (*Result, error) { time.Sleep(10 * time.Minute); return nil, nil }, []string{idleText},
			object{"kind": "idle", "exitCode": 124.0, "limitMs": 90250.0, "idleMs": 90250.0, "totalMs": 0.0, "abandoned": true}, 90250*ms + timeout.DefaultGrace},
		{"a question that comes too late", idle, func(ctx context.Context, _ *Call) (*Result, error) {
			<-ctx.Done()
			return &Result{Ask: map[string]string{"q": "?"}}, nil
		}, []string{idleText}, idleOutcome, 90250 * ms},
		{"panic", idle, func(context.Context, *Call) (*Result, error) { panic("no such index") }, []string{"panic: no such index"}, nil, 0},
		{"goexit", idle, func(context.Context, *Call) (*Result, error) { runtime.Goexit(); return nil, nil }, []string{"timeout: the function called runtime.Goexit"}, nil, 0},
		{"an error that is a nil pointer", idle, func(context.Context, *Call) (*Result, error) { var none *fs.PathError; return nil, none },
			[]string{"panic: runtime error: invalid memory address or nil pointer dereference"}, nil, 0},
		{"nested", idle, func(ctx context.Context, _ *Call) (*Result, error) {
			return nil, timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: s})
		}, []string{"Tool exceeded wall-clock limit of 1s."}, object{"kind": "total", "exitCode": 124.0, "limitMs": 1000.0, "idleMs": 0.0, "totalMs": 1000.0, "leftMs": 0.0}, s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ended := make(chan timeout.Snapshot, 1)
			over(t, sdk, func() Config {
				ended = make(chan timeout.Snapshot, 1)
				return Config{Policy: defaults(tc.limits), Hooks: ends(ended), Tools: map[string]Tool{"tool": {Run: tc.run}}}
			}, func(t *testing.T, p *Peer) {
				m := p.call("tool", nil, nil).wait()
				if m == nil || m.Error != nil {
					t.Fatalf("%+v", m)
				}
				if got := m.Took; got != tc.after {
					t.Errorf("answered after %v, want %v", got, tc.after)
				}
				if d := cmp.Diff(tc.want, texts(m.Result)); d != "" {
					t.Error(d)
				}
				if failed := m.Result["isError"] == true; failed != (tc.want[0] != "done") {
					t.Errorf("isError is %v", failed)
				}
				got := outcome(m.Result)
				for _, inexact := range []string{"elapsedMs", "longestGapMs", "beats"} {
					delete(got, inexact)
				}
				if d := cmp.Diff(tc.outcome, got); d != "" {
					t.Error(d)
				}
				if complete := m.Result["resultType"] == "complete"; complete != (p.Version == New) || len(shared.Meta) != 1 {
					t.Errorf("resultType is %v, and the _meta of the tool's result %v", m.Result["resultType"], shared.Meta)
				}
				if got := <-ended; (got.Err != nil) != (tc.want[0] != "done") || tc.name == "failed" && !errors.Is(got.Err, toolcall.ErrResult) {
					t.Errorf("the hooks got %v", got.Err)
				}
			})
		})
	}
	// The SDK decides how a tool's own error is answered.
	t.Run("error", func(t *testing.T) {
		over(t, sdk, func() Config {
			return Config{Tools: map[string]Tool{"tool": {Run: func(context.Context, *Call) (*Result, error) { return nil, errors.New("disk is full") }}}}
		}, func(t *testing.T, p *Peer) {
			m := p.call("tool", nil, nil).wait()
			if sdk.ErrorsAreResults {
				if m.Result["isError"] != true || texts(m.Result)[0] != "disk is full" || outcome(m.Result) != nil {
					t.Errorf("%s", m.Raw)
				}
			} else if m.Error == nil || m.Error.Code != -32603 || m.Error.Message != "disk is full" {
				t.Errorf("%s", m.Raw)
			}
		})
	})
}

// ids tests that a call has the id of its request as the client has sent it, and the id of its session if the protocol
// has sessions.
func ids(t *testing.T, sdk SDK) {
	var got *toolcall.Call
	over(t, sdk, func() Config {
		return Config{Tools: map[string]Tool{"id": {Run: func(ctx context.Context, c *Call) (*Result, error) {
			got = toolcall.FromContext(ctx)
			if sdk.CarriesIDs && c.Meta["io.github.tooldeadline/requestID"] != nil {
				return nil, errors.New("the tool sees the way that it took")
			}
			return Text("done"), nil
		}}}}
	}, func(t *testing.T, p *Peer) {
		for _, id := range []string{`"a-7"`, `12`, `0`} {
			meta := p.params(nil)
			if m, ok := meta["_meta"].(object); ok {
				m["io.github.tooldeadline/requestID"] = "forged"
			}
			params, _ := json.Marshal(object{"name": "id", "arguments": object{}, "_meta": meta["_meta"]})
			if meta["_meta"] == nil {
				params = []byte(`{"name":"id","arguments":{}}`)
			}
			m := p.raw(id, "tools/call", []byte(`{"jsonrpc":"2.0","method":"tools/call","params":`+string(params)+`,"id":`+id+`}`)).wait()
			if m == nil || texts(m.Result)[0] != "done" {
				t.Fatalf("%+v", m)
			}
			p.mu.Lock()
			session := p.session
			p.mu.Unlock()
			if got.RequestID != id && got.RequestID != strings.Trim(id, `"`) {
				t.Errorf("the id of %s is %q", id, got.RequestID)
			}
			if p.http() && got.SessionID != session || p.Name == "HTTP "+Old && session == "" {
				t.Errorf("the session is %q, want %q", got.SessionID, session)
			}
		}
	})
}
