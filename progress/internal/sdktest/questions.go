package sdktest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A person answers the questions of a server after some time, unless the server cancels them.
type person struct {
	mu    sync.Mutex
	asked map[string]bool // the ids of the questions received
	taken []time.Duration // the times at which questions were cancelled
}

// answers makes the person answer each question to p with a result, after the given time.
func (h *person) answers(p *Peer, after time.Duration, result any) {
	h.asked = make(map[string]bool)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask = func(m Message) any {
		h.mu.Lock()
		h.asked[string(m.ID)] = true
		h.mu.Unlock()
		for waited := time.Duration(0); waited < after; waited += s / 10 {
			time.Sleep(min(s/10, after-waited))
			for _, c := range p.heard("notifications/cancelled") {
				if strings.Contains(string(c.Raw), `"requestId":`+string(m.ID)) {
					h.mu.Lock()
					h.taken = append(h.taken, c.At)
					h.mu.Unlock()
					return nil
				}
			}
		}
		return result
	}
}

const (
	noAnswer = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
	noModel  = "Command timed out waiting for an answer of the model. Consider configuring a longer timeout."
)

// questions tests SPEC 7.9, 7.10, 4.6: during the wait for a person, the idle check is held, the client gets keep-alive
// notifications, and the answer has a limit, after which the question is cancelled. If the client asks the person
// between two calls, no limit runs. A request to the client's model waits in the same way.
func questions(t *testing.T, sdk SDK) {
	elicit := func(ctx context.Context, c *Call) (*Result, error) {
		action, err := c.Elicit(ctx, "the removal of 3 files")
		if err != nil {
			return nil, err
		}
		return Text(action), nil
	}
	byResult := func(_ context.Context, c *Call) (*Result, error) {
		if c.Answers["q"] != "" {
			return Text(c.Answers["q"]), nil
		}
		return &Result{Ask: map[string]string{"q": "the removal of 3 files"}}, nil
	}
	two := func(_ context.Context, c *Call) (*Result, error) {
		if len(c.Answers) == 2 {
			return Text(c.Answers["a"] + " " + c.Answers["b"] + " " + c.State), nil
		}
		return &Result{Ask: map[string]string{"a": "rm -r build", "b": "git push"}, State: "asked"}, nil
	}
	wrapped := func(ctx context.Context, c *Call) (*Result, error) {
		return progress.Await(ctx, "the removal of 3 files", progress.Wait{Limit: 2 * time.Minute, ProgressLimit: 2 * time.Minute}, func(ctx context.Context) (*Result, error) { return elicit(ctx, c) })
	}
	limited := func(ctx context.Context, c *Call) (*Result, error) {
		return timeout.Do(ctx, func(ctx context.Context) (*Result, error) { return elicit(ctx, c) }, timeout.Config{Total: 2 * time.Minute, Idle: s})
	}
	sample := func(ctx context.Context, c *Call) (*Result, error) {
		model, err := c.Sample(ctx)
		if err != nil {
			return nil, err
		}
		return Text(model), nil
	}
	usual := timeout.Config{Total: 3 * time.Minute, Idle: 5 * s}
	long, short := progress.Wait{Limit: 2 * time.Minute, ProgressLimit: 2 * time.Minute}, progress.Wait{Limit: 20 * s, ProgressLimit: 60 * s}
	for _, tc := range []struct {
		name   string
		tool   func(context.Context, *Call) (*Result, error)
		limits timeout.Config
		await  progress.Wait
		token  any
		answer time.Duration
		want   string
		after  time.Duration
	}{
		{"answered", elicit, usual, progress.Wait{}, "t", 25 * s, "accept", 25 * s},
		{"answered late", elicit, usual, progress.Wait{}, "t", 121 * s, noAnswer, 120 * s},
		{"no token, answered late", elicit, usual, progress.Wait{}, nil, 31 * s, noAnswer, 30 * s},
		{"longer limit", elicit, usual, long, nil, 119 * s, "accept", 119 * s},
		{"limit of the tool's own", wrapped, usual, progress.Wait{}, "t", 119 * s, "accept", 119 * s},
		{"execution of the tool's own", limited, usual, progress.Wait{}, nil, 29 * s, "accept", 29 * s},
		{"total", elicit, timeout.Config{Total: time.Minute, Idle: 5 * s}, long, "t", 119 * s, noAnswer, 58 * s},
		{"by result", byResult, usual, progress.Wait{}, "t", 25 * s, "accept", 25 * s},
		{"by result, late", byResult, usual, progress.Wait{}, "t", 121 * s, noAnswer, 120 * s},
		{"model", sample, usual, short, "t", 59 * s, "a model", 59 * s},
		{"model, late", sample, usual, short, "t", 61 * s, noModel, 60 * s},
		{"model, no token, late", sample, usual, short, nil, 21 * s, noModel, 20 * s},
		{"two by result", two, usual, progress.Wait{}, "t", 25 * s, "accept accept asked", 25 * s},
	} {
		if strings.HasPrefix(tc.name, "limit of the tool's own") && sdk.ElicitAwaits {
			continue
		}
		waiting, result, ways := "Waiting for approval of ", object{"action": "accept", "content": object{}}, []string{"lines " + Old, "HTTP " + Old, "SSE"}
		if strings.HasPrefix(tc.name, "model") {
			waiting, result, ways = "Waiting for an answer of the model (", object{"model": "a model", "role": "assistant", "content": object{"type": "text", "text": "x"}}, ways[:1]
		}
		t.Run(tc.name, func(t *testing.T) {
			over(t, sdk, func() Config {
				return Config{Policy: defaults(tc.limits), Await: tc.await, Tools: map[string]Tool{"remove": {Run: tc.tool}}}
			}, func(t *testing.T, p *Peer) {
				if p.Stateless || p.Name == "SSE" && !sdk.AsksOverSSE {
					return
				}
				var h person
				h.answers(p, tc.answer, result)
				begun := time.Since(p.begun)
				m := p.call("remove", tc.token, nil).wait()
				// The answer follows a keep-alive notification that is due at the same instant after 5 ms.
				if m.Took < tc.after || m.Took > tc.after+5*ms {
					t.Errorf("answered after %v, want %v", m.Took, tc.after)
				}
				failed := tc.want == noAnswer || tc.want == noModel
				if d := cmp.Diff(tc.want, texts(m.Result)[0]); d != "" || (m.Result["isError"] == true) != failed || failed && outcome(m.Result)["exitCode"] != 124.0 {
					t.Error(d, outcome(m.Result))
				}
				time.Sleep(s)
				h.mu.Lock()
				// Over HTTP the official SDK can drop the cancellation, because the answer has closed the stream.
				if taken := len(h.taken); tc.want != noModel && (sdk.ElicitAwaits || p.lines()) && ((taken > 0) != failed || failed && h.taken[0]-begun != tc.after) {
					t.Errorf("taken back after %v", h.taken)
				}
				h.mu.Unlock()
				all := p.progress(tc.token)
				if increases(t, all); tc.token != nil && len(all) < int(tc.after/(15*s)) {
					t.Errorf("%d notifications in %v", len(all), tc.after)
				}
				for _, n := range all {
					if message := fmt.Sprint(n.Params["message"]); !strings.HasPrefix(message, waiting) {
						t.Errorf("%s", n.Raw)
					}
				}
			}, ways...)
		})
	}
	t.Run("two calls", func(t *testing.T) {
		over(t, sdk, func() Config {
			return Config{Policy: &policy.Policy{Default: &usual}, Tools: map[string]Tool{"remove": {Run: byResult}, "asks": {Run: elicit}}}
		}, func(t *testing.T, p *Peer) {
			m := p.call("remove", "t", nil).wait()
			asked, _ := m.Result["inputRequests"].(object)
			if m.Result["resultType"] != "input_required" || len(asked) != 1 {
				t.Fatalf("%v", m)
			}
			time.Sleep(time.Hour)
			m = p.call("remove", "t", object{"requestState": m.Result["requestState"], "inputResponses": object{"q": object{"action": "accept", "content": object{}}}}).wait()
			if texts(m.Result)[0] != "accept" {
				t.Errorf("%v", m)
			}
			// From this protocol on a server cannot ask during a call.
			if m := p.call("asks", "t", nil).wait(); m.Took > 5*ms || m.Error == nil && m.Result["isError"] != true {
				t.Errorf("%v", m)
			}
		}, "lines "+New, "HTTP "+New)
	})
}
