package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// timedOut checks that err is the error of a request that timed out, as SPEC 8.2 describes it, and returns the
// *timeout.Error in it.
func timedOut(t testing.TB, sdk SDK, err error, method string) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if sdk.Code(err) != request.CodeTimeout || !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v with code %d: want a *timeout.Error of %s with code -32001, got %+v", err, sdk.Code(err), method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v: want context.DeadlineExceeded, and not context.Canceled", err)
	}
	return e
}

// requestEnds tests SPEC 3.11, 3.12, 8.1, 8.2, 8.6, 8.10: how a call ends that is answered, that reaches a limit, or that
// its caller gives up, with the reason in the notifications/cancelled and in the log. The tests of package request cover
// every limit to the nanosecond.
func requestEnds(t *testing.T, sdk SDK) {
	const (
		idleLog  = `The server has sent neither an answer nor progress: raise the client's limit, or let progress renew it."`
		totalLog = `If the server may take longer, raise the client's limit."`
		abortLog = `msg="tool was aborted" tool=build`
	)
	stop := errors.New("the user pressed Stop")
	reset := func(l request.Limits) request.Limits { l.ResetOnProgress = true; return l }
	second, hour := request.Limits{Timeout: s}, request.Limits{Timeout: time.Hour}
	for _, tc := range []struct {
		name     string
		limits   request.Limits
		progress []time.Duration
		answer   time.Duration // 0 means never
		gone     time.Duration // when the caller's context ends; 0 means never
		cancel   error         // the cause of that end; nil means that a deadline ends the context
		took     time.Duration
		kind     timeout.Kind // 0 means that the call is answered
		message  string       // of the error, if a limit of the request is reached
		reason   string
		log      string
	}{
		{name: "in time", limits: reset(second), progress: []time.Duration{800 * ms}, answer: 1600 * ms, took: 1600 * ms},
		{name: "no reset", limits: second, progress: []time.Duration{800 * ms}, answer: 1600 * ms, took: s, kind: timeout.ErrIdle,
			message: `Request timed out: no answer for 1s`, reason: "timeout of 1 s without an answer", log: `"No progress for 1s (idle timeout). ` + idleLog},
		{name: "silence", limits: reset(second), progress: []time.Duration{800 * ms}, took: 1800 * ms, kind: timeout.ErrIdle,
			message: `Request timed out: no progress for 1s, 1.8s after the start`, reason: "timeout of 1 s without progress", log: idleLog},
		{name: "cap with progress", limits: reset(request.Limits{Timeout: 100 * ms, MaxTotal: 150 * ms}), progress: []time.Duration{80 * ms, 160 * ms}, took: 150 * ms, kind: timeout.ErrTotal,
			message: `Maximum total timeout exceeded: 150ms`, reason: "timeout of 150 ms in total", log: `"Request exceeded wall-clock limit of 0.15s. ` + totalLog},
		{name: "deadline of the caller", limits: hour, gone: 250 * ms, took: 250 * ms, kind: timeout.ErrTotal, reason: "timeout of 250 ms in total", log: totalLog},
		{name: "person", limits: hour, gone: s, cancel: stop, took: s, kind: timeout.ErrAborted, reason: "cancelled: the user pressed Stop", log: abortLog},
		{name: "caller", limits: hour, gone: s, cancel: context.Canceled, took: s, kind: timeout.ErrAborted, reason: "cancelled by the client", log: abortLog},
	} {
		both(t, tc.name, func(t *testing.T, version string) {
			var log bytes.Buffer
			sc := new(Script)
			c := sc.dial(t, sdk, ClientConfig{PerMethod: map[string]request.Limits{"tools/call": tc.limits}, Version: version, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(r *Asked) {
				if r.Method != "tools/call" {
					return
				}
				for i, at := range tc.progress {
					if r.until(at) {
						r.progress(float64(i+1), "")
					}
				}
				if tc.answer > 0 && r.until(tc.answer) {
					r.answer(`{"content":[{"type":"text","text":"done"}]}`)
				}
			})
			begun := time.Now()
			ctx, cancel := ending(t.Context(), tc.gone, tc.cancel)
			defer cancel()
			res, err := c.Call(ctx, "build", nil, nil)
			if took := time.Since(begun); took != tc.took {
				t.Errorf("after %v, want %v", took, tc.took)
			}
			time.Sleep(s)
			cancelled := sc.heard("notifications/cancelled")
			if tc.kind == 0 {
				if err != nil || res.Texts[0] != "done" || len(cancelled) > 0 {
					t.Errorf("%v, %v, %v", res, err, cancelled)
				}
				return
			}
			if tc.message != "" {
				timedOut(t, sdk, err, "tools/call")
				if text := strings.TrimPrefix(err.Error(), "transport error: "); text != `calling "tools/call": `+tc.message {
					t.Errorf("%q, want %q", text, tc.message)
				}
			}
			var e *timeout.Error
			if !errors.As(err, &e) || e.Kind != tc.kind || e.Elapsed != tc.took || e.Abandoned || tc.cancel != nil && !errors.Is(err, tc.cancel) ||
				errors.Is(err, context.Canceled) != (tc.cancel != nil) || errors.Is(err, context.DeadlineExceeded) == (tc.cancel != nil) {
				t.Errorf("%v: %+v", err, e)
			}
			if len(cancelled) != 1 || cancelled[0].Params["reason"] != tc.reason {
				t.Errorf("the server got %v, want %s", cancelled, tc.reason)
			}
			if text := log.String(); !strings.Contains(text, "tool=build method=tools/call server=wire ") || !strings.Contains(text, tc.log) || strings.Contains(text, "heartbeat()") {
				t.Errorf("%s\nwant %s", text, tc.log)
			}
		})
	}
}

// whichLimits tests SPEC 8.4: a request has the limits of WithLimits, or else of its method, or else the defaults. Each
// request that times out is cancelled by its own id.
func whichLimits(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		var sent, cancelled []any
		c := new(Script).dial(t, sdk, ClientConfig{Version: Old, Limits: request.Limits{Timeout: 4 * s}, PerMethod: map[string]request.Limits{
			"tools/call": {Timeout: s}, "tools/*": {Timeout: 2 * s}, "resources/*": {MaxTotal: 3 * s}, "initialize": {},
		}}, func(r *Asked) {
			if r.Method == "notifications/cancelled" {
				cancelled = append(cancelled, fmt.Sprint(r.Params["requestId"]))
			} else {
				sent = append(sent, string(r.ID))
			}
		})
		for _, tc := range []struct {
			method string
			own    request.Limits
			want   time.Duration
		}{
			{"tools/call", request.Limits{}, s}, {"tools/list", request.Limits{}, 2 * s}, {"resources/read", request.Limits{}, 3 * s}, {"ping", request.Limits{}, 4 * s},
			{"tools/call", request.Limits{MaxTotal: 5 * s}, 5 * s},
		} {
			ctx := t.Context()
			if tc.own != (request.Limits{}) {
				ctx = request.WithLimits(ctx, tc.own)
			}
			begun := time.Now()
			err := ask(ctx, c, tc.method)
			if timedOut(t, sdk, err, tc.method); time.Since(begun) != tc.want {
				t.Errorf("%s: after %v, want %v", tc.method, time.Since(begun), tc.want)
			}
			synctest.Wait()
		}
		if d := cmp.Diff(sent, cancelled); d != "" || len(sent) != 5 {
			t.Error(d)
		}
	})
}

// ending returns a context that ends after the given time with a cause, or, if cause is nil, by a deadline. If after is
// 0, the context does not end.
func ending(ctx context.Context, after time.Duration, cause error) (context.Context, context.CancelFunc) {
	if after > 0 && cause == nil {
		return context.WithTimeout(ctx, after)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if after > 0 {
		time.AfterFunc(after, func() { cancel(cause) })
	}
	return ctx, func() { cancel(nil) }
}

// ask sends a request of any method, and returns its error.
func ask(ctx context.Context, c Client, method string) (err error) {
	if method == "tools/call" {
		_, err = c.Call(ctx, "work", nil, nil)
	} else {
		_, err = c.Request(ctx, method)
	}
	return err
}
