package toolcall_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tool is called within another: with the same session by a wrapper of one tool, with another
// by a server that the tool runs itself.
func TestNested(t *testing.T) {
	for _, tc := range []struct {
		name         string
		outer, inner any
		want         []string // who notifies the client
	}{
		{"one session", "s", "s", []string{"outer"}},
		{"no session", nil, nil, []string{"outer"}},
		{"another", "s", "t", []string{"inner", "outer"}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[string]bool{}
			send := func(name string) progress.Notifier {
				return func(context.Context, progress.Notification) error {
					mu.Lock()
					defer mu.Unlock()
					got[name] = true
					return nil
				}
			}
			_, err := toolcall.Do(t.Context(), nil, toolcall.Call{Tool: "outer", Session: tc.outer, Token: 1, Send: send("outer")}, func(ctx context.Context) (int, error) {
				if c := toolcall.FromContext(ctx); c == nil || c.Tool != "outer" || c.Session != tc.outer || !toolcall.Direct(ctx) {
					t.Errorf("outer: %+v, %v", c, toolcall.Direct(ctx))
				}
				return toolcall.Do(ctx, nil, toolcall.Call{Tool: "inner", Session: tc.inner, Token: 1, Send: send("inner")}, func(ctx context.Context) (int, error) {
					if c := toolcall.FromContext(ctx); c == nil || c.Tool != "inner" || !toolcall.Direct(ctx) {
						t.Errorf("inner: %+v, %v", c, toolcall.Direct(ctx))
					}
					progress.Report(ctx, progress.Update{Progress: 1})
					synctest.Wait()
					return 0, timeout.Run(ctx, func(ctx context.Context) error {
						if c := toolcall.FromContext(ctx); c == nil || c.Tool != "inner" || toolcall.Direct(ctx) {
							t.Errorf("an execution within: %+v, %v", c, toolcall.Direct(ctx))
						}
						return nil
					})
				})
			})
			want := map[string]bool{}
			for _, name := range tc.want {
				want[name] = true
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestOutsideACall(t *testing.T) {
	if c := toolcall.FromContext(t.Context()); c != nil || toolcall.Direct(t.Context()) {
		t.Errorf("%+v", c)
	}
}

type counter struct{ started, ended int }

func (c *counter) Started(context.Context) { c.started++ }
func (c *counter) Ended()                  { c.ended++ }

// SPEC 7.4: to the client a call within another one of its session is a part of that, and so it has
// the other's observer, which learns of the outer one alone.
func TestObserverOfACallWithin(t *testing.T) {
	for name, session := range map[string]any{"the same session": 1, "another session": 2} {
		outer := new(counter)
		_, err := toolcall.Do(t.Context(), nil, toolcall.Call{Tool: "outer", Session: 1, Observer: outer}, func(ctx context.Context) (int, error) {
			return toolcall.Do(ctx, nil, toolcall.Call{Tool: "inner", Session: session}, func(ctx context.Context) (int, error) {
				if got := toolcall.FromContext(ctx).Observer; (got == outer) != (session == 1) {
					t.Errorf("%s: %v", name, got)
				}
				return 0, nil
			})
		})
		if err != nil || *outer != (counter{1, 1}) {
			t.Errorf("%s: %+v, %v", name, *outer, err)
		}
	}
}
