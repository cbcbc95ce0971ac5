package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// requestTimeout checks what SPEC 8.2 says of the error of a timeout.
func requestTimeout(t *testing.T, err error, method string) *timeout.Error {
	t.Helper()
	var wire *mcpgo.RequestTimeout
	if !errors.As(err, &wire) || wire.Details.Code != -32001 || !wire.Timeout() {
		t.Fatalf("%T %v: want a *RequestTimeout with code -32001", err, err)
	}
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v: want a *timeout.Error of %s, got %+v", err, method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || !errors.Is(err, mcp.ErrRequestInterrupted) {
		t.Errorf("%v: want context.DeadlineExceeded and mcp.ErrRequestInterrupted, not context.Canceled", err)
	}
	return e
}

// SPEC 8.1, 8.2: the behaviour of the TypeScript SDK, and what it gets wrong, exactly.
func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		limits   mcpgo.ClientLimits
		progress []time.Duration
		answer   time.Duration
		fails    time.Duration // 0: does not
		kind     timeout.Kind
		message  string
		details  string
	}{
		{name: "no reset", limits: mcpgo.ClientLimits{Timeout: 1000 * ms}, progress: []time.Duration{800 * ms}, answer: 1600 * ms,
			fails: 1000 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no answer for 1s`, details: `Request timed out {"timeout":1000,"totalElapsed":1000}`},
		{name: "reset", limits: mcpgo.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: 1600 * ms},
		{name: "three resets", limits: mcpgo.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true},
			progress: []time.Duration{800 * ms, 1600 * ms, 2400 * ms}, answer: 3200 * ms},
		{name: "silence", limits: mcpgo.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: never,
			fails: 1800 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1.8s after the start`, details: `Request timed out {"timeout":1000,"totalElapsed":1800}`},
		{name: "cap with progress", limits: mcpgo.ClientLimits{Timeout: 100 * ms, MaxTotal: 150 * ms, ResetOnProgress: true},
			progress: []time.Duration{80 * ms, 160 * ms}, answer: never,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`, details: `Maximum total timeout exceeded {"maxTotalTimeout":150,"totalElapsed":150}`},
		{name: "cap without progress", limits: mcpgo.ClientLimits{Timeout: time.Minute, MaxTotal: 150 * ms, ResetOnProgress: true}, answer: never,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap without reset", limits: mcpgo.ClientLimits{MaxTotal: 150 * ms}, answer: never,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "no limits", answer: 1000 * time.Hour},
		{name: "just in time", limits: mcpgo.ClientLimits{Timeout: 1000 * ms}, answer: 1000*ms - 1},
		{name: "progress just in time", limits: mcpgo.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{1000*ms - 1}, answer: 2000*ms - 2},
		{name: "progress just too late", limits: mcpgo.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{1000*ms + 1}, answer: never,
			fails: 1000 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1s after the start`},
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, " modern=", modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server.NewMCPServer("test", "1")
					cancelled := false
					s.AddTool(mcp.NewTool("work"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						start := time.Now()
						until := func(at time.Duration) {
							select {
							case <-time.After(at - time.Since(start)):
							case <-ctx.Done():
							}
						}
						for i, at := range tc.progress {
							until(at)
							if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
								_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1})
							}
						}
						until(tc.answer)
						cancelled = ctx.Err() != nil
						return mcp.NewToolResultText("done"), ctx.Err()
					})
					c := connect(t, mcpgo.Limit(transport.NewInProcessTransport(s), tc.limits, nil), modern)
					defer func() {
						_ = c.Close()
						time.Sleep(2 * never)
					}()
					start := time.Now()
					res, err := c.CallTool(t.Context(), call{tool: "work"}.request())
					elapsed := time.Since(start)
					synctest.Wait()
					if tc.fails == 0 {
						if err != nil || res.IsError || elapsed != tc.answer {
							t.Errorf("%v, %v after %v, want the answer after %v", res, err, elapsed, tc.answer)
						}
						return
					}
					e := requestTimeout(t, err, "tools/call")
					if res != nil || err.Error() != "transport error: "+tc.message || e.Kind != tc.kind || e.Elapsed != tc.fails || elapsed != tc.fails || e.Abandoned {
						t.Errorf("%v, %q after %v: %+v", res, err, elapsed, e)
					}
					var wire *mcpgo.RequestTimeout
					errors.As(err, &wire)
					if got := fmt.Sprintf("%s %s", wire.Details.Message, wire.Details.Data); tc.details != "" && got != tc.details {
						t.Errorf("%s, want %s", got, tc.details)
					}
					if !cancelled {
						t.Error("the request was not cancelled at the server")
					}
				})
			})
		}
	}
}

// limited is a client over a link, with limits.
func (l link) limited(t *testing.T, s *server.MCPServer, limits mcpgo.ClientLimits, opts ...client.ClientOption) *client.Client {
	t.Helper()
	return connect(t, mcpgo.Limit(l.open(t, s), mcpgo.ClientLimits{}, map[string]mcpgo.ClientLimits{"tools/*": limits}), l.modern, opts...)
}

// SPEC 8.2, 3.11, 3.23: a request that times out, or is cancelled, stops the tool, over every
// transport. Over HTTP mcp-go's client hangs up, which is how clients of 2026-07-28 cancel. In a
// session a message with the reason goes out beside that, and what comes first is the cause.
//
// The limit fires when the tool has begun. mcp-go drops a cancellation that overtakes its request, which
// can happen over SSE and stdio; under Serve it cannot, see TestCancelledBeforeAWorker.
func TestRequestStopsTheTool(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled=", cancelled), func(t *testing.T) {
			each(t, links, func(t *testing.T, l link) {
				s, started, ended := watched()
				now := clock.NewMock()
				c := connect(t, mcpgo.Limit(l.open(t, s), mcpgo.ClientLimits{}, map[string]mcpgo.ClientLimits{"tools/*": {Timeout: time.Minute}},
					mcpgo.WithRequestOptions(timeout.WithClock(now))), l.modern)
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				errs := make(chan error, 1)
				go func() {
					_, err := c.CallTool(ctx, call{tool: "wait"}.request())
					errs <- err
				}()
				within(t, started, "the start")
				if cancelled {
					cancel(errOwn)
				} else {
					now.Add(time.Minute)
				}
				err := within(t, errs, "the end of the request")
				if cancelled {
					if !errors.Is(err, context.Canceled) || !errors.Is(err, errOwn) || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
				} else {
					requestTimeout(t, err, "tools/call")
				}
				said := "client_timeout"
				if cancelled {
					said = "client"
				}
				causes := []string{""}
				switch {
				case strings.HasPrefix(l.name, "serve"):
					causes = []string{said}
				case l.name == "wrapped 2026", l.name == "wrapped 2025 stateless":
					causes = []string{"disconnected"}
				case strings.HasPrefix(l.name, "wrapped"):
					causes = []string{said, "disconnected"} // the first of two requests
				}
				aborted(t, within(t, ended, "the end of the tool"), causes...)
			})
		})
	}
}

// SPEC 8.1, 8.3: progress renews the limit over every transport, also while a handler of the
// user's is slow. Both ends are ours.
func TestResetWhileHandlerIsSlow(t *testing.T) {
	t.Parallel()
	args := map[string]any{"n": 75, "everyMs": 100} // for longer than the limit and the handler
	each(t, named("stdio 2025", "process", "sse 2025", "http 2025", "http 2026"), func(t *testing.T, l link) {
		c := l.limited(t, newServer(), mcpgo.ClientLimits{Timeout: 5 * time.Second, ResetOnProgress: true})
		var once sync.Once
		c.OnNotification(func(mcp.JSONRPCNotification) { once.Do(func() { time.Sleep(6 * time.Second) }) })
		res, err := c.CallTool(soon(t), call{tool: "report", args: args, token: "t"}.request())
		if err != nil || res.IsError {
			t.Errorf("%v, %v", res, err)
		}
	})
}

// The effects of a handler that is not slow can be seen when the call has returned, as they can
// be without us over stdio.
func TestHandlersBeforeTheAnswer(t *testing.T) {
	const runs = 20
	c := named("stdio 2025")[0].limited(t, newServer(), mcpgo.ClientLimits{Timeout: never, ResetOnProgress: true})
	var handled atomic.Int64
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		time.Sleep(5 * ms)
		handled.Add(1)
	})
	seen := 0
	for range runs {
		before := handled.Load()
		_, err := c.CallTool(soon(t), call{tool: "report", args: map[string]any{"lingerMs": 1}, token: "t"}.request())
		if err != nil {
			t.Fatal(err)
		}
		if handled.Load() > before {
			seen++
		}
		for deadline := time.Now().Add(time.Second); handled.Load() == before && time.Now().Before(deadline); {
			time.Sleep(ms)
		}
	}
	if seen < runs/4 { // on a busy machine 5 ms may become more than the 20 for which the answer waits
		t.Errorf("in %d of %d calls", seen, runs)
	}
}

// SPEC 8.3: the caller's own token and handler, whoever else makes calls meanwhile.
func TestOwnToken(t *testing.T) {
	each(t, links, func(t *testing.T, l link) {
		got := newNotes()
		c := l.limited(t, got.awaitedBy(newServer()), mcpgo.ClientLimits{Timeout: never, ResetOnProgress: true})
		got.record(c)
		for _, token := range []any{"mine", 7.0, nil} {
			args := map[string]any{"lingerMs": 50, "message": fmt.Sprint(token)}
			if token == nil {
				delete(args, "lingerMs") // nothing is heard
			}
			r := call{tool: "report", args: args, token: token}.request()
			before := r.Params.Meta
			l.until(func() bool { return token == nil || len(got.of(token)) > 0 }, func() {
				if _, err := c.CallTool(soon(t), r); err != nil {
					t.Fatal(err)
				}
			})
			if r.Params.Meta != before || before != nil && before.ProgressToken != token {
				t.Errorf("the caller's params are now %+v", r.Params.Meta)
			}
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		for token, message := range map[any]string{"mine": "mine", 7.0: "7"} {
			if n := got.byToken[token]; len(n) != 1 || n[0].Message != message {
				t.Errorf("%v: %v", token, n)
			}
		}
		if len(got.byToken) != 2 {
			t.Errorf("%v", got.byToken)
		}
	})
}

// 100 calls at once, each kept alive by its own progress alone.
func TestManyLimitedCalls(t *testing.T) {
	for _, l := range named("http 2026") {
		t.Run(l.name, func(t *testing.T) {
			c := l.limited(t, newServer(), mcpgo.ClientLimits{Timeout: 10 * time.Second, ResetOnProgress: true})
			manyCalls(t, c, 100, 90, 400)
		})
	}
}

// SPEC 9.1: the stream of notifications has no limit.
func TestStreamHasNoLimit(t *testing.T) {
	t.Parallel()
	l := named("http 2026")[0]
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
	c := connect(t, mcpgo.Limit(l.open(t, s), mcpgo.ClientLimits{Timeout: 5 * time.Second, MaxTotal: 6 * time.Second}, nil), true)
	ctx, cancel := context.WithCancel(soon(t))
	ended := make(chan error, 1)
	go func() { ended <- c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}) }()
	select {
	case err := <-ended:
		t.Errorf("the stream ended with %v", err)
	case <-time.After(8 * time.Second):
		cancel()
		<-ended
	}
	cancel()
}

// WithLimits is for the requests made with it, and the caller's deadline is a limit.
func TestWithLimits(t *testing.T) {
	t.Parallel()
	c := links[0].limited(t, newServer(), mcpgo.ClientLimits{Timeout: never})
	_, err := c.CallTool(mcpgo.WithLimits(soon(t), mcpgo.ClientLimits{MaxTotal: 50 * ms}), call{tool: "wait"}.request())
	if e := requestTimeout(t, err, "tools/call"); e.Limit != 50*ms {
		t.Errorf("%v", err)
	}
	const own = 3 * time.Second // it must not be over before the call is made
	ctx, cancel := context.WithTimeout(context.Background(), own)
	defer cancel()
	_, err = c.CallTool(ctx, call{tool: "wait"}.request())
	if e := requestTimeout(t, err, "tools/call"); e.Kind != timeout.KindTotal || e.Limit > own {
		t.Errorf("%v", err)
	}
	if _, err = c.CallTool(soon(t), call{tool: "noop"}.request()); err != nil {
		t.Error(err)
	}
}
