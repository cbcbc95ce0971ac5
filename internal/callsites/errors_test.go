package callsites_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A returnedError is what a function of the caller's returns, or the cause of its context: its methods do as they are told.
type returnedError struct {
	text, is string
	until    <-chan struct{}
}

func (e *returnedError) do(what string) {
	switch what {
	case "blocks":
		<-e.until
	case "panics":
		panic("hostile")
	case "ends":
		runtime.Goexit()
	}
}

func (e *returnedError) Error() string { e.do(e.text); return "hostile" }
func (e *returnedError) Is(error) bool { e.do(e.is); return false }
func (e *returnedError) As(any) bool   { e.do(e.is); return false }

type transport func() (*http.Response, error)

func (f transport) RoundTrip(*http.Request) (*http.Response, error) { return f() }

// SPEC 3.24: each operation returns in time, whatever the methods of the errors do that the caller's code gives it. The table of
// places has the functions, and not what they return.
func TestReturnedErrors(t *testing.T) {
	limits := timeout.Config{Total: time.Minute, Idle: time.Minute, Grace: time.Second}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	log := timeout.WithLogger(logger)
	renew := func(context.Context, lease.Checkpoint) error { return nil }
	get := func(ctx context.Context, rt http.RoundTripper) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", nil)
		req.Header.Set("Accept", "text/event-stream")
		if resp, err := rt.RoundTrip(req); err == nil {
			_, _ = resp.Body.Read(make([]byte, 1))
			_ = resp.Body.Close()
		}
	}
	for name, op := range map[string]func(ctx context.Context, end func(error), err error){
		"Run": func(ctx context.Context, _ func(error), err error) {
			_ = timeout.Run(ctx, func(context.Context) error { return err }, limits, log)
		},
		"Run, late": func(ctx context.Context, _ func(error), err error) {
			_ = timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return err }, limits, log)
		},
		"Run, cause": func(ctx context.Context, end func(error), err error) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				return timeout.Run(ctx, func(ctx context.Context) error { end(err); <-ctx.Done(); return ctx.Err() }, limits, log)
			}, limits, log)
		},
		"Run, never": func(ctx context.Context, end func(error), err error) {
			end(err)
			_ = timeout.Run(ctx, obeys, limits, log)
		},
		"toolcall.Do": func(ctx context.Context, _ func(error), err error) {
			_, got := toolcall.Do(ctx, &toolcall.Settings{Limits: &limits, Logger: logger}, toolcall.Call{}, func(context.Context) (int, error) { return 0, err })
			_ = toolcall.Text(got, "")
			_ = errors.Is(got, io.EOF) || got.Error() == "" // the adapters ask it, too
		},
		"toolcall.Do, cause": func(ctx context.Context, end func(error), err error) {
			_, got := toolcall.Do(ctx, &toolcall.Settings{Limits: &limits}, toolcall.Call{}, func(ctx context.Context) (int, error) { end(err); return 0, obeys(ctx) })
			_ = toolcall.Text(got, "")
		},
		"Drain.Shutdown": func(ctx context.Context, end func(error), err error) {
			d, over := new(toolcall.Drain), make(chan struct{})
			go func() {
				_, _ = toolcall.Do(d.Context(context.Background()), nil, toolcall.Call{}, func(context.Context) (int, error) { <-over; return 0, nil })
			}()
			defer close(over)
			time.Sleep(time.Second)
			end(err)
			_ = d.Shutdown(ctx)
		},
		"Tasks.Shutdown": func(ctx context.Context, end func(error), err error) {
			end(err)
			_ = new(task.Tasks).Shutdown(ctx)
		},
		"request.Do": func(ctx context.Context, _ func(error), err error) {
			_, _ = request.Do(ctx, request.New(&request.Options{Limits: &request.Limits{Timeout: time.Minute}, Logger: logger}), request.Call{}, func(context.Context, string) (int, error) { return 0, err })
		},
		"request.Do, cause": func(ctx context.Context, end func(error), err error) {
			_, got := request.Do(ctx, request.New(&request.Options{Limits: &request.Limits{Timeout: time.Minute}, Logger: logger}), request.Call{}, func(ctx context.Context, _ string) (int, error) { end(err); return 0, obeys(ctx) })
			_ = got.Error()
			_ = got.(*request.Error).Reason()
		},
		"request.Retry": func(ctx context.Context, end func(error), err error) {
			time.AfterFunc(time.Second, func() { end(err) })
			_, _ = request.Retry(ctx, request.Backoff{First: time.Hour}, func(error) bool { return true }, func() (int, error) { return 0, err })
		},
		"progress.Await": func(ctx context.Context, _ func(error), err error) {
			_, _ = progress.Await(ctx, "it", progress.Wait{}, func(context.Context) (int, error) { return 0, err })
		},
		"progress.Await, cause": func(ctx context.Context, end func(error), err error) {
			_, _ = progress.Await(ctx, "it", progress.Wait{}, func(ctx context.Context) (int, error) { end(err); return 0, obeys(ctx) })
		},
		"lease.Run, renewal": func(ctx context.Context, _ func(error), err error) {
			_ = lease.Run(ctx, lease.Lease{Duration: time.Minute, Renew: func(context.Context, lease.Checkpoint) error { return err }}, obeys, limits, log)
		},
		"lease.Run, release": func(ctx context.Context, _ func(error), err error) {
			_ = lease.Run(ctx, lease.Lease{Duration: time.Minute, Renew: renew, Release: func(context.Context, lease.Checkpoint) error { return err }},
				func(context.Context) error { return nil }, limits, log)
		},
		"lease.Run, work": func(ctx context.Context, _ func(error), err error) {
			_ = lease.Run(ctx, lease.Lease{Duration: time.Minute, Renew: renew, Release: renew}, func(context.Context) error { return err }, limits, log)
		},
		"stream.Transport": func(ctx context.Context, _ func(error), err error) {
			get(ctx, &stream.Transport{Base: transport(func() (*http.Response, error) { return nil, err }), Logger: logger})
		},
		"stream.Notifications": func(ctx context.Context, _ func(error), err error) {
			asked := 0
			get(ctx, &stream.Notifications{GiveUp: time.Minute, Base: transport(func() (*http.Response, error) {
				if asked++; asked > 1 {
					return nil, err
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(iotest.ErrReader(err))}, nil
			})})
		},
		"stream.Body": func(ctx context.Context, _ func(error), err error) {
			_, _ = stream.Body(ctx, io.NopCloser(iotest.ErrReader(err)), time.Minute).Read(make([]byte, 1))
		},
	} {
		for _, hostile := range []returnedError{{text: "blocks"}, {text: "panics"}, {text: "ends"}, {is: "blocks"}, {is: "panics"}, {is: "ends"}} {
			t.Run(name+", text "+hostile.text+", Is "+hostile.is, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					until, returned := make(chan struct{}), make(chan bool, 1)
					hostile.until = until
					ctx, end := context.WithCancelCause(context.Background())
					go func() {
						ok := false
						defer func() { _ = recover(); returned <- ok }()
						op(ctx, end, &hostile)
						ok = true
					}()
					select {
					case ok := <-returned:
						if !ok {
							t.Error("it panics, or ends its goroutine")
						}
					case <-time.After(2 * time.Hour):
						t.Error("it does not return")
					}
					close(until)
					end(nil)
					time.Sleep(2 * time.Hour)
				})
			})
		}
	}
}
