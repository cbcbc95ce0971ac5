package request_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errGone = errors.New("the user has gone")

// SPEC 3.11, 3.12: the caller's cancel stays one, and its deadline is a timeout.
func TestCallerEnds(t *testing.T) {
	limits := request.Limits{Timeout: time.Minute, ResetOnProgress: true}
	for _, test := range []struct {
		name    string
		context func(context.Context) (context.Context, context.CancelFunc)
		want    string
		is      error
		isNot   error
		kind    timeout.Kind
	}{
		{"cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, `calling "m": context canceled`, context.Canceled, context.DeadlineExceeded, timeout.ErrAborted},
		{"cancelled before", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errGone)
			return ctx, func() {}
		}, `calling "m": the user has gone`, context.Canceled, context.DeadlineExceeded, timeout.ErrAborted},
		{"cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errGone) })
			return ctx, func() { cancel(nil) }
		}, `calling "m": the user has gone`, errGone, context.DeadlineExceeded, timeout.ErrAborted},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, `calling "m": Maximum total timeout exceeded: 1s`, context.DeadlineExceeded, context.Canceled, timeout.ErrTotal},
	} {
		bubble(t, test.name, func(t *testing.T) {
			c := request.New(only(limits))
			ctx, cancel := test.context(t.Context())
			defer cancel()
			_, err := request.Do(ctx, c, request.Call{Method: "m"}, server(c, nil, time.Hour))
			e := stopped(t, err)
			if e.Error() != test.want || !errors.Is(err, test.is) || errors.Is(err, test.isNot) || e.Stop.Kind != test.kind || e.Timeout() != (test.kind == timeout.ErrTotal) {
				t.Errorf("%v: %+v", err, e.Stop)
			}
		})
	}
}

// What send returns in time is passed on as it is, a timeout of something else included.
func TestReturned(t *testing.T) {
	c := request.New(only(request.Limits{Timeout: time.Minute}))
	for _, want := range []error{errGone, &timeout.Error{Kind: timeout.ErrIdle}, &request.Error{Stop: &timeout.Error{}}} {
		got, err := request.Do(t.Context(), c, request.Call{Method: "m"}, func(context.Context, string) (int, error) { return 7, want })
		if got != 7 || err != want {
			t.Errorf("%v, %v, want 7, %v", got, err, want)
		}
	}
}

// An error that comes after the limit is in the tree of the timeout.
func TestReturnedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := request.New(only(request.Limits{Timeout: time.Minute}))
		_, err := request.Do(t.Context(), c, request.Call{Method: "m"}, func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			return 7, errGone
		})
		if e := stopped(t, err); e.Stop.Err != errGone || !errors.Is(err, errGone) || !errors.Is(err, timeout.ErrIdle) {
			t.Errorf("%v", err)
		}
	})
}

// A send that ignores its context holds the caller up for no longer than the grace.
func TestDeafSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := request.New(only(request.Limits{Timeout: time.Minute, ResetOnProgress: true}))
		release := make(chan struct{})
		start := time.Now()
		_, err := request.Do(t.Context(), c, request.Call{Method: "m"}, func(context.Context, string) (int, error) { <-release; return 0, nil })
		if e := stopped(t, err); !e.Stop.Abandoned || time.Since(start) != time.Minute+250*ms || c.Waiting() != 0 {
			t.Errorf("%v after %v, %d registered", err, time.Since(start), c.Waiting())
		}
		close(release)
	})
}

// A request that must not be cancelled is over for the caller at once, and its context
// ends a little later.
func TestNoCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := request.New(only(request.Limits{Timeout: time.Minute, ResetOnProgress: true}))
		start := time.Now()
		ended := make(chan time.Duration, 1)
		_, err := request.Do(t.Context(), c, request.Call{Method: "initialize", NoCancel: true}, func(ctx context.Context, token string) (int, error) {
			time.AfterFunc(time.Second, func() { c.Progress(nil, token) })
			<-ctx.Done()
			ended <- time.Since(start)
			return 0, ctx.Err()
		})
		if e := stopped(t, err); e.Stop.Kind != timeout.ErrIdle || time.Since(start) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if at := <-ended; at != time.Minute+time.Second+100*ms {
			t.Errorf("the context ended after %v", at)
		}
	})
}

// A panic of send is the caller's, as it is without Do.
func TestPanic(t *testing.T) {
	c := request.New(only(request.Limits{Timeout: time.Minute, ResetOnProgress: true}))
	defer func() {
		if v := recover(); v != errGone || c.Waiting() != 0 {
			t.Errorf("%v, %d registered", v, c.Waiting())
		}
	}()
	_, err := request.Do(t.Context(), c, request.Call{Method: "m"}, func(context.Context, string) (int, error) { panic(errGone) })
	t.Errorf("returned %v", err)
}
