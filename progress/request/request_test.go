package request_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

// bubble runs a named test in simulated time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// server answers after a while, and reports progress at given times before that. It
// stops when the context does.
func server(c *request.Limiter, session any, answer time.Duration, progress ...time.Duration) func(context.Context, string) (string, error) {
	return func(ctx context.Context, token string) (string, error) {
		for _, at := range progress {
			time.AfterFunc(at, func() {
				if token != "" {
					c.Progress(session, token)
				}
			})
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(answer):
			return "answer", nil
		}
	}
}

// SPEC 8.1: the behaviour of the TypeScript SDK, without its defects: the cap holds
// without progress and without reset, and 0 is no cap.
func TestLimits(t *testing.T) {
	ns := time.Nanosecond
	for _, test := range []struct {
		name     string
		limits   request.Limits
		progress []time.Duration
		answer   time.Duration
		fails    time.Duration // 0: does not
		kind     timeout.Kind
		message  string
	}{
		{name: "no reset", limits: request.Limits{Timeout: 1000 * ms}, progress: []time.Duration{800 * ms}, answer: 1600 * ms,
			fails: 1000 * ms, kind: timeout.ErrIdle, message: `calling "tools/call": Request timed out: no answer for 1s`},
		{name: "reset", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: 1600 * ms},
		{name: "three resets", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true},
			progress: []time.Duration{800 * ms, 1600 * ms, 2400 * ms}, answer: 3200 * ms},
		{name: "silence", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true}, answer: time.Hour,
			fails: 1000 * ms, kind: timeout.ErrIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1s after the start`},
		{name: "silence after progress", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: time.Hour,
			fails: 1800 * ms, kind: timeout.ErrIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1.8s after the start`},
		{name: "cap with progress", limits: request.Limits{Timeout: 100 * ms, MaxTotal: 150 * ms, ResetOnProgress: true},
			progress: []time.Duration{80 * ms, 160 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.ErrTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap without progress", limits: request.Limits{MaxTotal: 150 * ms, ResetOnProgress: true}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.ErrTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap without reset", limits: request.Limits{Timeout: 200 * ms, MaxTotal: 150 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.ErrTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap equal to the timeout", limits: request.Limits{Timeout: 150 * ms, MaxTotal: 150 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.ErrTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "no limits", limits: request.Limits{ResetOnProgress: true}, answer: 1000 * time.Hour},
		{name: "negative is none", limits: request.Limits{Timeout: -1, MaxTotal: -1}, answer: 1000 * time.Hour},
		{name: "just in time", limits: request.Limits{Timeout: 1000 * ms}, answer: 1000*ms - ns},
		{name: "just too late", limits: request.Limits{Timeout: 1000*ms - ns}, answer: 1000 * ms,
			fails: 1000*ms - ns, kind: timeout.ErrIdle, message: `calling "tools/call": Request timed out: no answer for 999.999999ms`},
		{name: "progress just in time", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true},
			progress: []time.Duration{1000*ms - ns}, answer: 2000*ms - 2*ns},
		{name: "progress just too late", limits: request.Limits{Timeout: 1000 * ms, ResetOnProgress: true},
			progress: []time.Duration{1000*ms + ns}, answer: time.Hour,
			fails: 1000 * ms, kind: timeout.ErrIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1s after the start`},
	} {
		bubble(t, test.name, func(t *testing.T) {
			c := request.New(only(test.limits))
			start := time.Now()
			got, err := request.Do(t.Context(), c, request.Call{Method: "tools/call"}, server(c, nil, test.answer, test.progress...))
			elapsed := time.Since(start)
			if c.Waiting() != 0 {
				t.Errorf("%d requests are still registered", c.Waiting())
			}
			if test.fails == 0 {
				if err != nil || got != "answer" || elapsed != test.answer {
					t.Errorf("%q, %v after %v, want the answer after %v", got, err, elapsed, test.answer)
				}
				return
			}
			e := stopped(t, err)
			if e.Error() != test.message || e.Stop.Kind != test.kind || e.Stop.Elapsed != test.fails || elapsed != test.fails {
				t.Errorf("%q (%v) with %v elapsed, after %v, want %q (%v) after %v", e, e.Stop.Kind, e.Stop.Elapsed, elapsed, test.message, test.kind, test.fails)
			}
			if got != "" || e.Stop.Tool != "tools/call" || e.Stop.Abandoned || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("value %q, error %+v", got, e.Stop)
			}
		})
	}
}

func stopped(t *testing.T, err error) *request.Error {
	t.Helper()
	var e *request.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v, want a *request.Error", err, err)
	}
	return e
}

// SPEC 8.2: what goes into the error of the SDK is what the TypeScript SDK puts there.
func TestMessageAndData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			limits        request.Limits
			message, data string
		}{
			{request.Limits{Timeout: 1500 * time.Microsecond}, "Request timed out", `{"timeout":1.5,"totalElapsed":1.5}`},
			{request.Limits{MaxTotal: time.Minute}, "Maximum total timeout exceeded", `{"maxTotalTimeout":60000,"totalElapsed":60000}`},
		} {
			c := request.New(only(test.limits))
			_, err := request.Do(t.Context(), c, request.Call{Method: "m"}, server(c, nil, time.Hour))
			e := stopped(t, err)
			if e.Message() != test.message || string(e.Data()) != test.data || !json.Valid(e.Data()) {
				t.Errorf("%q %s, want %q %s", e.Message(), e.Data(), test.message, test.data)
			}
		}
	})
}

// SPEC 8.4: the limits that are proposed.
func TestDefaultLimits(t *testing.T) {
	list, connect := request.Limits{Timeout: 10 * time.Second}, request.Limits{Timeout: 5 * time.Second}
	want := map[string]request.Limits{
		"tools/call": {Timeout: 30 * time.Second, MaxTotal: 30 * time.Minute, ResetOnProgress: true},
		"tools/list": list, "resources/*": list, "prompts/*": list, "initialize": connect, "server/discover": connect,
	}
	if d := cmp.Diff(want, request.DefaultLimits()); d != "" {
		t.Error(d)
	}
}

// SPEC 8.4.
func TestLimitsOfMethod(t *testing.T) {
	per := map[string]request.Limits{
		"tools/call":       {Timeout: 1 * ms},
		"resources/*":      {Timeout: 2 * ms},
		"resources/temp*":  {Timeout: 3 * ms},
		"resources/list":   {Timeout: 4 * ms},
		"notifications/*":  {Timeout: 5 * ms},
		"subscriptions/*":  {Timeout: 6 * ms},
		"completion/*/odd": {Timeout: 7 * ms},
	}
	c := request.New(&request.Options{Limits: &request.Limits{Timeout: 9 * ms}, PerMethod: per})
	clear(per) // the map is the caller's
	got := make(map[string]time.Duration)
	for _, method := range []string{"tools/call", "tools/list", "resources/read", "resources/templates/list", "resources/list",
		"ping", "notifications/initialized", "subscriptions/listen", "completion/x/odd"} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _ = request.Do(t.Context(), c, request.Call{Method: method}, server(c, nil, time.Hour))
			got[method] = time.Since(start)
		})
	}
	want := map[string]time.Duration{
		"tools/call": 1 * ms, "tools/list": 9 * ms, "resources/read": 2 * ms, "resources/templates/list": 3 * ms, "resources/list": 4 * ms,
		"ping": 9 * ms, "notifications/initialized": time.Hour, "subscriptions/listen": time.Hour, "completion/x/odd": 9 * ms,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A stream gets the caller's own context, which goes on after the request.
func TestStreamIsLeftAlone(t *testing.T) {
	c := request.New(only(request.Limits{Timeout: ms, ResetOnProgress: true}))
	var inner context.Context
	_, err := request.Do(t.Context(), c, request.Call{Method: "subscriptions/listen"}, func(ctx context.Context, token string) (int, error) {
		inner = ctx
		if token != "" {
			t.Errorf("a stream has got the token %q", token)
		}
		return 0, nil
	})
	if err != nil || inner.Err() != nil {
		t.Errorf("%v, %v", err, inner.Err())
	}
}

// SPEC 8.1: WithLimits is for one request, and not for what is called on its behalf.
func TestWithLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := request.New(&request.Options{Limits: &request.Limits{Timeout: time.Hour}, PerMethod: map[string]request.Limits{"m": {Timeout: time.Hour}}})
		ctx := request.WithLimits(t.Context(), request.Limits{MaxTotal: time.Minute})
		_, err := request.Do(ctx, c, request.Call{Method: "m"}, func(ctx context.Context, _ string) (int, error) {
			start := time.Now()
			_, err := request.Do(context.WithoutCancel(ctx), c, request.Call{Method: "m"}, func(ctx context.Context, token string) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if e := stopped(t, err); e.Stop.Kind != timeout.ErrIdle || time.Since(start) != time.Hour {
				t.Errorf("inner: %v after %v", err, time.Since(start))
			}
			return 0, nil
		})
		if e := stopped(t, err); e.Stop.Kind != timeout.ErrTotal || e.Stop.Limit != time.Minute {
			t.Errorf("outer: %v", err)
		}
		time.Sleep(time.Hour)
		start := time.Now()
		_, err = request.Do(request.WithLimits(t.Context(), request.Limits{}), c, request.Call{Method: "m"}, server(c, nil, 5*time.Hour))
		if err != nil || time.Since(start) != 5*time.Hour {
			t.Errorf("limits taken off: %v after %v", err, time.Since(start))
		}
	})
}

// only returns options with the same limits for every method.
func only(l request.Limits) *request.Options {
	return &request.Options{Limits: &l, PerMethod: map[string]request.Limits{}}
}
