package toolcall_test

import (
	"context"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

type counter struct{ started, ended int }

func (c *counter) Started(context.Context) { c.started++ }
func (c *counter) Ended()                  { c.ended++ }

// SPEC 7.4: to the client a call within another one of its session is a part of that, and so it has
// the other's observer, which learns of the outer one alone.
func TestObserverOfACallWithin(t *testing.T) {
	for name, session := range map[string]any{"the same session": 1, "another session": 2} {
		outer := new(counter)
		_, err := toolcall.Do(observe.With(t.Context(), outer), nil, toolcall.Call{Tool: "outer", Session: 1}, func(ctx context.Context) (int, error) {
			return toolcall.Do(ctx, nil, toolcall.Call{Tool: "inner", Session: session}, func(ctx context.Context) (int, error) {
				if got := observe.From(ctx, observe.Of); (got == outer) != (session == 1) {
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
