package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// slowList has a server take a while for each page of its tools, and twice as long for the first ones.
func slowList(s *mcp.Server, wait time.Duration, first int) {
	lists := 0
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				wait := wait
				if lists++; lists <= first {
					wait *= 2
				}
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return next(ctx, method, req)
		}
	})
}

// SPEC 8.7: tools/list is a phase with a limit of its own for each page, and is tried again with the rest.
func TestConnectListsTools(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wait  time.Duration // of each of three pages
		first int           // pages that take twice as long
		tries int
		took  time.Duration
		err   string
	}{
		{"in time", 5*time.Second - 1, 0, 1, 3 * (5*time.Second - 1), ""},
		{"too late once", 4 * time.Second, 1, 2, 5*time.Second + 2*time.Second + 3*4*time.Second, ""},
		{"too late", 5*time.Second + 1, 0, 4, 4*5*time.Second + 14*time.Second, `connecting: tools/list: Request timed out: no answer for 5s`},
	} {
		for _, limited := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, limited=%v", tc.name, limited), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, &mcp.ServerOptions{PageSize: 1})
					for _, name := range []string{"a", "b", "c"} {
						addTool(s, name, func(context.Context, func(float64, string)) error { return nil })
					}
					slowList(s, tc.wait, tc.first)
					c := newTestClient(nil)
					if limited { // Connect's is what counts
						mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second}, nil)
					}
					tries, start := 0, time.Now()
					var names []string
					cs, err := mcpsdk.Connect(t.Context(), c, func() (mcp.Transport, error) {
						tries++
						return inMemoryTo(t, s)()
					}, &mcpsdk.ConnectOptions{Tools: func(tools []*mcp.Tool) {
						for _, tool := range tools {
							names = append(names, tool.Name)
						}
					}})
					if took := time.Since(start); tries != tc.tries || took != tc.took {
						t.Errorf("%d tries in %v, want %d in %v", tries, took, tc.tries, tc.took)
					}
					if tc.err != "" {
						want := tc.err
						if limited {
							want = `connecting: calling "tools/list": Request timed out: no answer for 5s`
						}
						if err == nil || err.Error() != want || cs != nil || names != nil {
							t.Errorf("%v, %v, want %s", err, names, want)
						}
						time.Sleep(time.Minute)
						return
					}
					if diff := cmp.Diff([]string{"a", "b", "c"}, names); err != nil || diff != "" {
						t.Fatalf("%v %s", err, diff)
					}
					time.Sleep(time.Minute) // past the limits of the phases
					if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"}); err != nil {
						t.Error(err)
					}
					_ = cs.Close()
				})
			})
		}
	}
}

// A server that has no tools is not asked for them.
func TestConnectWithoutTools(t *testing.T) {
	s := newTestServer()
	asked := false
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			asked = asked || method == "tools/list"
			return next(ctx, method, req)
		}
	})
	called := 0
	cs, err := mcpsdk.Connect(t.Context(), newTestClient(nil), inMemoryTo(t, s), &mcpsdk.ConnectOptions{Tools: func(tools []*mcp.Tool) {
		if called++; tools != nil {
			t.Error(tools)
		}
	}})
	if err != nil || asked || called != 1 {
		t.Fatalf("%v, asked %v, called %d times", err, asked, called)
	}
	_ = cs.Close()
}

// SPEC 8.7: a server that could not be reached is tried again every 30 s, until the program says otherwise.
func TestConnectStanding(t *testing.T) {
	for _, tc := range []struct {
		name  string
		again int // how often the program says to go on
		up    int // the try that succeeds
		end   time.Duration
		want  []time.Duration
		err   string
	}{
		{name: "the program gives up", again: 2, up: 99, want: []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second, 62 * time.Second, 63 * time.Second}, err: "connecting: refused"},
		{name: "at once", again: 0, up: 99, want: []time.Duration{0, time.Second}, err: "connecting: refused"},
		{name: "it comes up", again: 99, up: 4, want: []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second}},
		{name: "the context ends", again: 99, up: 99, end: 40 * time.Second, want: []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second},
			err: "waiting to try again (connecting: refused): the user pressed Stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.end > 0 {
					time.AfterFunc(tc.end, func() { cancel(errStop) })
				}
				s, start := newTestServer(), time.Now()
				var got []time.Duration
				failed := 0
				cs, err := mcpsdk.Connect(ctx, newTestClient(nil), func() (mcp.Transport, error) {
					if got = append(got, time.Since(start)); len(got) < tc.up {
						return nil, errRefused
					}
					return inMemoryTo(t, s)()
				}, &mcpsdk.ConnectOptions{
					Backoff: request.Backoff{Retries: 1, First: time.Second},
					Failed: func(err error) bool {
						if !errors.Is(err, errRefused) {
							t.Error(err)
						}
						failed++
						return failed <= tc.again
					},
				})
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
				if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err || failed != len(got)/2 && err != nil {
					t.Errorf("%v after %d failures, want %s", err, failed, tc.err)
				}
				if cs != nil {
					_ = cs.Close()
				}
			})
		})
	}
}
