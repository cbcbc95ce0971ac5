package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// defaults returns a policy that has these limits for all tools.
func defaults(limits timeout.Config) *policy.Policy { return &policy.Policy{Default: &limits} }

// unlimited returns a policy without limits.
func unlimited() *policy.Policy { return defaults(timeout.Config{}) }

// ends returns hooks that send the last snapshot of each execution to ended.
func ends(ended chan timeout.Snapshot) timeout.Hooks {
	return timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s }}
}

func wait(ctx context.Context, _ *Call) (*Result, error) { <-ctx.Done(); return nil, ctx.Err() }

// stops tests SPEC 3.11, 3.23, 7.8: a client that cancels a call or leaves stops the tool at once, and hooks get the
// cause.
func stops(t *testing.T, sdk SDK) {
	cancel := func(reason string) func(*Peer, *Exchange) {
		return func(_ *Peer, x *Exchange) { x.cancel(reason) }
	}
	otherwise := func(p *Peer, x *Exchange) {
		p.notify("notifications/cancelled", object{"requestId": json.RawMessage(x.ID + ".0"), "reason": "User requested cancellation"})
	}
	hangUp := func(p *Peer, x *Exchange) { x.hangUp() }
	for _, tc := range []struct {
		name string
		act  func(*Peer, *Exchange)
		ways string
		want string
	}{
		{"the client's limit", cancel("Request timed out"), "lines", "client_timeout"},
		{"a person", cancel("User requested cancellation"), "lines", "person"},
		{"a person, of an id that is spelled otherwise", otherwise, "lines", "person"},
		{"a person, of an id that is spelled otherwise", otherwise, "HTTP " + Old, "person"},
		{"other words", cancel("AbortError"), "lines", "client"},
		{"the client's limit", cancel("Request timed out"), "HTTP " + Old, "client_timeout"},
		{"other words", cancel("AbortError"), "HTTP " + Old, "client"},
		{"the words of an SDK's client", cancel("context deadline exceeded"), "lines", "client_timeout"},
		{"the client's limit", cancel("Request timed out"), "SSE", ""},
		{"a request that hangs up", cancel(""), "HTTP " + New, "disconnected"},
		{"a request that hangs up", hangUp, "HTTP stateless", "disconnected"},
		{"the connection is lost", func(p *Peer, _ *Exchange) { p.cut() }, "lines", "disconnected"},
		{"the connection is lost", func(p *Peer, _ *Exchange) { p.cut() }, "HTTP stateless", "disconnected"},
		{"the connection is lost", func(p *Peer, _ *Exchange) { p.cut() }, "HTTP " + New, "disconnected"},
		{"the connection is lost", func(p *Peer, _ *Exchange) { p.cut() }, "SSE", "disconnected"},
		{"the client leaves", func(p *Peer, _ *Exchange) { p.leave() }, "lines", "disconnected"},
		{"the session ends", func(p *Peer, _ *Exchange) { p.leave() }, "HTTP " + Old, "session_ended"},
		{"shutdown", func(p *Peer, _ *Exchange) { p.stop() }, "lines", "shutdown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ended := make(chan timeout.Snapshot, 9)
			over(t, sdk, func() Config {
				ended = make(chan timeout.Snapshot, 9)
				return Config{Policy: unlimited(), Hooks: ends(ended), Tools: map[string]Tool{"silent": {Run: wait}}}
			}, func(t *testing.T, p *Peer) {
				x := p.call("silent", nil, nil)
				time.Sleep(time.Hour)
				begun := time.Now()
				tc.act(p, x)
				got := <-ended
				if took := time.Since(begun); took > 50*ms || took > 0 && tc.want != "session_ended" { // a DELETE may take some time
					t.Errorf("stopped after %v", took)
				}
				if cause := toolcall.CauseOf(got.Err); cause != tc.want || !errors.Is(got.Err, timeout.ErrAborted) {
					t.Errorf("the cause is %q of %v, want %q", cause, got.Err, tc.want)
				}
				var cancelled *toolcall.CancelledError
				if synctest.Wait(); p.lines() && strings.Contains(tc.want, "disconnected") {
					if err := <-p.over; err != nil {
						t.Errorf("Serve has returned %v", err)
					}
				}
				if said := errors.As(got.Err, &cancelled); said != (cancelled != nil) || said && cancelled.Reason == "" {
					t.Error("the client's words are missing")
				}
			}, tc.ways)
		})
	}
}

// ignoringTools tests SPEC 3.9: tools that ignore the end of their contexts do not block a server, and each call is
// answered at the end of its grace.
func ignoringTools(t *testing.T, sdk SDK) {
	over(t, sdk, func() Config {
		return Config{Policy: &policy.Policy{Tools: map[string]policy.Tool{"deaf": {Limits: &timeout.Config{Total: s, Grace: s}}}}, Tools: map[string]Tool{
			"deaf": {Run: func(context.Context, *Call) (*Result, error) { time.Sleep(time.Minute); return nil, nil }},
			"noop": {Run: func(context.Context, *Call) (*Result, error) { return Text("done"), nil }},
		}}
	}, func(t *testing.T, p *Peer) {
		var all []*Exchange
		for range 5 { // the number of workers of an mcp-go server over stdio
			all = append(all, p.call("deaf", nil, nil))
		}
		synctest.Wait()
		noop := p.call("noop", nil, nil)
		for _, x := range all {
			if m := x.wait(); m == nil || m.Took != 2*s || outcome(m.Result)["abandoned"] != true {
				t.Errorf("%+v", m)
			}
		}
		if m := noop.wait(); m == nil || texts(m.Result)[0] != "done" || m.Took > 2*s {
			t.Errorf("%+v", m)
		}
	})
}

// shutdownText is the beginning of the text of a call that a shutdown has aborted.
const shutdownText = "Tool was aborted: the server is shutting down"

// shutdown tests SPEC 3.22: each call that has arrived before a shutdown is answered. If the shutdown has enough time,
// the tools get the signal of timeout.Closing first.
func shutdown(t *testing.T, sdk SDK) {
	tools := map[string]Tool{
		"long": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
			progress.Report(ctx, progress.Update{Progress: 1})
			<-ctx.Done()
			return Text(strings.Repeat("x", 8<<10)), nil
		}},
		"saves": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
			select {
			case <-timeout.Closing(ctx):
				return Text("two of three files"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}},
	}
	for _, w := range sdk.ways() {
		for _, tc := range []struct {
			tool  string
			limit time.Duration
			want  string
		}{{"long", toolcall.ShutdownLimit, shutdownText}, {"saves", 6 * toolcall.ShutdownLimit, "two of three files"}} {
			Bubble(t, w.Name+" "+tc.tool, func(t *testing.T) {
				if own := w.Handler; own != nil {
					w.Handler = func(srv Server) http.Handler { d := srv.(*drained); return d.drain.Handler(own(d.Server)) }
					defer func() { w.Handler = own }()
				}
				srv := &drained{Server: sdk.NewServer(Config{Policy: new(policy.Policy), Tools: tools}), limit: tc.limit}
				p := Dial(t, srv, w)
				var all []*Exchange
				for i := range 8 { // more than an mcp-go server over stdio has workers
					all = append(all, p.call(tc.tool, i, nil))
				}
				time.Sleep(time.Minute)
				begun := time.Now()
				var err error
				if w.lines() {
					p.stop()
					err = <-p.over
				} else {
					ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
					defer cancel()
					err = srv.drain.Shutdown(ctx)
				}
				if err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > tc.limit {
					t.Errorf("took %v", took)
				}
				synctest.Wait()
				for _, x := range all {
					if !x.answered() && w.Name == "SSE" && sdk.LosesAnswersOverSSE {
						continue
					}
					if !x.answered() {
						t.Errorf("%s is not answered", x.ID)
						continue
					}
					m := x.wait()
					text, _, _ := strings.Cut(texts(m.Result)[0], "\n") // the next line is the newest progress
					// A call that waits for a worker does not reach its tool.
					if text != tc.want && !(w.lines() && text == shutdownText) {
						t.Errorf("%.200s", m.Raw)
					}
				}
			})
		}
	}
}

// A drained is a server with a Drain around its HTTP handlers, and a limit for the shutdown of Serve.
type drained struct {
	Server
	drain toolcall.Drain
	limit time.Duration
}

func (d *drained) Serve(ctx context.Context, in io.Reader, out io.Writer, _ time.Duration) error {
	return d.Server.Serve(ctx, in, out, d.limit)
}
func (d *drained) HTTP(stateless bool) http.Handler { return d.drain.Handler(d.Server.HTTP(stateless)) }
func (d *drained) SSE() http.Handler                { return d.drain.Handler(d.Server.SSE()) }

// bounded tests that a client that does not read its answers delays the end of Serve no longer than the limit.
func bounded(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		srv := &drained{Server: sdk.NewServer(Config{Policy: new(policy.Policy), Tools: map[string]Tool{"silent": {Run: wait}}}), limit: s}
		in, out := NewPipe(), NewPipe()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx, in, out, 0) }()
		_, _ = in.Write([]byte(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"))
		synctest.Wait()
		_, _ = in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent","arguments":{}}}` + "\n"))
		synctest.Wait()
		out.Stall()
		begun := time.Now()
		stop()
		if err := <-served; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "calls without an answer: 1") || time.Since(begun) != s {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		_, _ = out.Close(), in.Close()
		srv.Close()
	})
}

// observes tests SPEC 3.18: a server whose policy only observes answers as if there were no limits, and tells the hooks.
func observes(t *testing.T, sdk SDK) {
	var ended chan timeout.Snapshot
	over(t, sdk, func() Config {
		ended = make(chan timeout.Snapshot, 1)
		return Config{Policy: &policy.Policy{Default: &timeout.Config{Idle: 10 * s, Total: time.Minute}, ObserveOnly: true}, Hooks: ends(ended), Tools: map[string]Tool{"slow": {
			Run: func(ctx context.Context, _ *Call) (*Result, error) { return Text("done"), Sleep(ctx, 90*s) },
		}}}
	}, func(t *testing.T, p *Peer) {
		if m := p.call("slow", nil, nil).wait(); texts(m.Result)[0] != "done" || m.Result["isError"] == true {
			t.Errorf("%s", m.Raw)
		}
		if f := <-ended; !f.ObserveOnly || f.Observed == nil || f.Observed.Kind != timeout.ErrIdle {
			t.Errorf("%+v", f)
		}
	}, "lines", "HTTP "+New)
}

// refuses tests that a call that arrives during a shutdown is answered, and that its tool is not called.
func refuses(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		called := false
		srv := &drained{limit: toolcall.ShutdownLimit, Server: sdk.NewServer(Config{Policy: defaults(timeout.Config{Grace: time.Minute}), Tools: map[string]Tool{
			"deaf": {Run: func(ctx context.Context, _ *Call) (*Result, error) {
				time.Sleep(s + toolcall.ShutdownLimit/2)
				return Text("done"), nil
			}},
			"noop": {Run: func(context.Context, *Call) (*Result, error) { called = true; return Text("done"), nil }},
		}})}
		p := Dial(t, srv, Ways[0])
		first := p.call("deaf", nil, nil)
		time.Sleep(s)
		p.stop()
		synctest.Wait()
		if m := p.call("noop", nil, nil).wait(); texts(m.Result)[0] != shutdownText || called {
			t.Errorf("called %v: %s", called, m.Raw)
		}
		if d := cmp.Diff([]string{shutdownText, "done"}, texts(first.wait().Result)); d != "" {
			t.Error(d)
		}
		if err := <-p.over; err != nil {
			t.Error(err)
		}
	})
}

// sessions tests that a client that ends its session stops only the tools of that session. A client that does not know
// the id of a session stops nothing.
func sessions(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		ended := make(chan timeout.Snapshot, 9)
		srv := sdk.NewServer(Config{Policy: unlimited(), Hooks: ends(ended), Tools: map[string]Tool{"silent": {Run: wait}}})
		first := Dial(t, srv, Way{Name: "HTTP " + Old, Version: Old, open: (*Peer).overHTTP})
		peers := []*Peer{first, first.another()}
		for _, p := range peers {
			p.call("silent", nil, nil)
		}
		nobody := &Peer{Way: first.Way, t: t, session: "nobody's"}
		nobody.postTo(first.web, func() {})
		nobody.leave()
		for i, p := range peers {
			time.Sleep(time.Minute)
			if len(ended) != 0 {
				t.Errorf("%d: a tool of another session was stopped", i)
			}
			p.leave()
			if got := <-ended; toolcall.CauseOf(got.Err) != "session_ended" {
				t.Error(got.Err)
			}
		}
		nobody.end()
	})
}
