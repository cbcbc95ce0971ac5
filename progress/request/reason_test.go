package request_test

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

// SPEC 8.6: which limit, and how long, in one unit.
func TestReason(t *testing.T) {
	for _, tc := range []struct {
		stop  timeout.Error
		reset bool
		want  string
	}{
		{timeout.Error{Kind: timeout.ErrIdle, Limit: time.Minute}, true, "timeout of 60 s without progress"},
		{timeout.Error{Kind: timeout.ErrIdle, Limit: time.Minute}, false, "timeout of 60 s without an answer"},
		{timeout.Error{Kind: timeout.ErrIdle, Limit: time.Second - 1}, false, "timeout of 1000 ms without an answer"},
		{timeout.Error{Kind: timeout.ErrIdle, Limit: time.Second}, false, "timeout of 1 s without an answer"},
		{timeout.Error{Kind: timeout.ErrTotal, Limit: 2 * time.Minute}, true, "timeout of 120 s in total"},
		{timeout.Error{Kind: timeout.ErrTotal, Limit: 3 * time.Minute}, true, "timeout of 3 min in total"},
		{timeout.Error{Kind: timeout.ErrTotal, Limit: 3*time.Minute + 1500*ms}, true, "timeout of 181.5 s in total"},
		{timeout.Error{Kind: timeout.ErrTotal}, false, "timeout of 0 ms in total"},
		{timeout.Error{Kind: timeout.ErrAborted}, true, "cancelled by the client"},
		{timeout.Error{Kind: timeout.ErrAborted, Cause: context.Canceled}, true, "cancelled by the client"},
		{timeout.Error{Kind: timeout.ErrAborted, Cause: errGone}, true, "cancelled: the user has gone"},
	} {
		if got := (&request.Error{Reset: tc.reset, Stop: &tc.stop}).Reason(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func ExampleError_Reason() {
	c := request.New(only(request.Limits{Timeout: 10 * time.Millisecond}))
	_, err := request.Do(context.Background(), c, request.Call{Method: "ping"}, silent)
	if e := (*request.Error)(nil); errors.As(err, &e) {
		fmt.Println(e.Reason())
	}
	// Output: timeout of 10 ms without an answer
}

// SPEC 8.9: a client's limits are logged and hooked as those of an execution are, and no option takes the
// place of the limits.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var got []string
		note := func(what string) func(context.Context, timeout.Snapshot) {
			return func(_ context.Context, s timeout.Snapshot) {
				got = append(got, fmt.Sprintf("%s %s %s %v", what, s.Operation, s.Tool, timeout.ExitCode(s.Err)))
			}
		}
		c := request.New(&request.Options{
			Limits: &request.Limits{Timeout: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks: timeout.Hooks{Started: note("started"), Exceeded: note("exceeded"), Finished: note("finished")},
		})
		for _, answer := range []time.Duration{time.Second - 1, time.Hour} {
			_, _ = request.Do(t.Context(), c, request.Call{Method: "ping"}, server(c, nil, answer))
		}
		want := []string{"started request ping 0", "finished request ping 0", "started request ping 0", "exceeded request ping 124", "finished request ping 124"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if text := log.String(); strings.Count(text, `msg="tool timed out" tool=ping`) != 1 {
			t.Errorf("the log is %s", text)
		}
	})
}

// SPEC 3.3: what was left of the caller's deadline is shown as people read it.
func TestErrorRoundsWhatWasLeft(t *testing.T) {
	e := &request.Error{Doing: "calling", Stop: &timeout.Error{Kind: timeout.ErrTotal, Limit: 4999987654, Cause: context.DeadlineExceeded}}
	if got, want := e.Error(), "calling: Maximum total timeout exceeded: 5s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A longCause is a cause of more than anybody reads, and one without a text.
type longCause struct{ until <-chan struct{} }

func (c longCause) Error() string {
	if c.until != nil {
		<-c.until
	}
	return strings.Repeat("x", 10<<20)
}

// SPEC 3.24, 3.25: the cause of the caller goes into texts, and to the server, within a bound of time and of size.
func TestHostileCause(t *testing.T) {
	for name, deaf := range map[string]bool{"long": false, "without a text": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cause longCause
				if deaf {
					until := make(chan struct{})
					defer close(until)
					cause.until = until
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				_, err := request.Retry(ctx, request.Backoff{}, func(error) bool { return true }, func() (int, error) { return 0, cause })
				begun := time.Now()
				stop := &request.Error{Doing: "calling", Stop: &timeout.Error{Kind: timeout.ErrAborted, Cause: cause}}
				for _, text := range []string{stop.Reason(), stop.Error()} {
					if len(text) > 65<<10 || deaf != strings.Contains(text, "no text") {
						t.Errorf("%d bytes: %.80s", len(text), text)
					}
				}
				if took := time.Since(begun); took > 3*time.Second || err == nil {
					t.Errorf("took %v, %T", took, err)
				}
			})
		})
	}
}
