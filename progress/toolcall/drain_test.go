package toolcall_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// stopped is what the test's calls return: the text of their error, and when.
type stopped struct {
	Text  string
	After time.Duration
}

// SPEC 3.15: a request that is no call ends when the calls have been answered, and not before.
func TestDrainStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drain toolcall.Drain
		start := time.Now()
		stream := func() (ended <-chan stopped) {
			all := make(chan stopped, 1)
			go drain.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				all <- stopped{context.Cause(r.Context()).Error(), time.Since(start)}
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			return all
		}
		first := stream()
		left, leave := toolcall.Join(drain.Context(t.Context()))
		if leave(); left.Err() == nil {
			t.Error("a context is left behind")
		}
		_, leave = toolcall.Join(drain.Context(t.Context()))
		time.AfterFunc(time.Second, leave)
		synctest.Wait()
		if err := drain.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		want := []stopped{{"the server is shutting down", time.Second}, {"the server is shutting down", time.Second}}
		if diff := cmp.Diff(want, []stopped{<-first, <-stream()}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// SPEC 3.22: calls are closing first, as long as the time beyond ShutdownLimit, and then aborted: both
// sides of the boundary.
func TestDrainClosesFirst(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limit  time.Duration // of Shutdown; 0 is none
		needs  time.Duration // of the tool, to end when it is closing
		early  time.Duration // when the context of Shutdown is cancelled, if it is
		second time.Duration // the limit of a second Shutdown, a second later, if there is one
		closed bool
		ends   time.Duration // the tool
		err    string
	}{
		{name: "in time", limit: time.Minute, needs: 50*time.Second - 1, closed: true, ends: 50*time.Second - 1},
		{name: "too late", limit: time.Minute, needs: 50*time.Second + 1, closed: true, ends: 50 * time.Second, err: "Tool was aborted: the server is shutting down"},
		{name: "a nanosecond", limit: toolcall.ShutdownLimit + 1, needs: time.Second, closed: true, ends: 1, err: "Tool was aborted: the server is shutting down"},
		{name: "no time", limit: toolcall.ShutdownLimit, needs: time.Second, err: "Tool was aborted: the server is shutting down"},
		{name: "no deadline", needs: time.Second, err: "Tool was aborted: the server is shutting down"},
		{name: "given up", limit: time.Minute, needs: time.Minute, early: 5 * time.Second, closed: true, ends: 5 * time.Second, err: "Tool was aborted: the server is shutting down"},
		{name: "a second Shutdown", limit: time.Minute, needs: time.Minute, second: 12 * time.Second, closed: true, ends: 3 * time.Second, err: "Tool was aborted: the server is shutting down"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var drain toolcall.Drain
			var closings int
			settings := &toolcall.Settings{Options: []timeout.Setting{timeout.WithHooks(timeout.Hooks{
				Closing: func(context.Context, timeout.Snapshot) { closings++ },
			})}}
			start := time.Now()
			ended := make(chan stopped, 1)
			go func() {
				_, err := toolcall.Do(drain.Context(t.Context()), settings, toolcall.Call{}, func(ctx context.Context) (int, error) {
					select {
					case <-timeout.Closing(ctx):
					case <-ctx.Done():
						return 0, ctx.Err()
					}
					select {
					case <-time.After(tc.needs):
						return 0, nil
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				})
				s := stopped{After: time.Since(start)}
				if err != nil {
					s.Text = err.Error()
				}
				ended <- s
			}()
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			if tc.limit > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), tc.limit)
			}
			defer cancel()
			if tc.early > 0 {
				time.AfterFunc(tc.early, cancel)
			}
			if tc.second > 0 {
				time.AfterFunc(time.Second, func() {
					ctx, cancel := context.WithTimeout(t.Context(), tc.second)
					defer cancel()
					_ = drain.Shutdown(ctx)
				})
			}
			err := drain.Shutdown(ctx)
			if diff := cmp.Diff(stopped{tc.err, tc.ends}, <-ended); diff != "" || err != nil && tc.early == 0 {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if (closings == 1) != tc.closed || closings > 1 {
				t.Errorf("closing was reported %d times", closings)
			}
		})
	}
}

// SPEC 3.22: a call that has joined and not begun when Shutdown begins is closing from its start.
func TestDrainClosesTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drain toolcall.Drain
		settings := &toolcall.Settings{Options: []timeout.Setting{timeout.WithHooks(timeout.Hooks{
			Started: func(context.Context, timeout.Snapshot) { time.Sleep(time.Minute) },
		})}}
		ended := make(chan error, 1)
		go func() {
			_, err := toolcall.Do(drain.Context(t.Context()), settings, toolcall.Call{}, func(ctx context.Context) (int, error) {
				select {
				case <-timeout.Closing(ctx):
					return 0, nil
				default:
					return 0, errors.New("not closing")
				}
			})
			ended <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := drain.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
