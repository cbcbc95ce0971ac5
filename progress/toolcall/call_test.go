package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// bubble runs a named test in simulated time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// SPEC 2.6: where a request may ask, and how.
func TestRequested(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	meta, args := map[string]any{"timeoutMs": 1000.0}, map[string]any{"timeoutMs": 2000.0, "q": "x"}
	const unasked = 30 * time.Minute
	for _, tc := range []struct {
		name      string
		inMeta    bool
		inArgs    bool
		meta      map[string]any
		arguments any
		want      time.Duration
	}{
		{"nobody looks", false, false, meta, args, unasked},
		{"_meta", true, false, meta, args, time.Second},
		{"arguments", false, true, meta, args, 2 * time.Second},
		{"both, _meta first", true, true, meta, args, time.Second},
		{"both, only arguments given", true, true, nil, args, 2 * time.Second},
		{"both, null in _meta", true, true, map[string]any{"timeoutMs": nil}, args, 2 * time.Second},
		{"neither given", true, true, map[string]any{}, map[string]any{}, unasked},
		{"no arguments", false, true, nil, nil, unasked},
		{"JSON", false, true, nil, raw(`{"q":"x","timeoutMs":3000}`), 3 * time.Second},
		{"JSON, null", false, true, nil, raw(`{"timeoutMs":null}`), unasked},
		{"JSON without", false, true, nil, raw(`{"q":"timeoutMs"}`), unasked},
		{"JSON, another case", false, true, nil, raw(`{"TIMEOUTMS":3000}`), unasked},
		{"JSON, an escape", false, true, nil, raw(`{"timeout\u004ds":3000}`), 3 * time.Second},
		{"JSON, no object", false, true, nil, raw(`["timeoutMs"]`), unasked},
		{"JSON, empty", false, true, nil, raw(``), unasked},
		{"of another type", false, true, nil, struct{ TimeoutMs int }{1}, unasked},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			s := &toolcall.Settings{MetaTimeout: tc.inMeta, ArgumentTimeout: tc.inArgs}
			got, err := toolcall.Do(t.Context(), s, toolcall.Call{Meta: tc.meta, Arguments: tc.arguments},
				func(ctx context.Context) (time.Duration, error) {
					deadline, _ := ctx.Deadline()
					return time.Until(deadline), nil
				})
			if got != tc.want || err != nil {
				t.Errorf("%v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

// A tool may read another one of two values than the server.
func TestTimeoutTwice(t *testing.T) {
	for _, args := range []string{`{"timeoutMs":1000,"timeoutMs":9000}`, `{"timeoutMs":1000,"timeout\u004ds":9000}`} {
		_, err := toolcall.Do(t.Context(), &toolcall.Settings{ArgumentTimeout: true}, toolcall.Call{Tool: "scan", Arguments: json.RawMessage(args)},
			func(context.Context) (int, error) {
				t.Error("the tool was called")
				return 0, nil
			})
		if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "timeoutMs" {
			t.Errorf("%s: %v", args, err)
		}
	}
}

type panicking struct{}

func (panicking) String() string { panic("boom") }

// SPEC 7.7, 3.17.
func TestText(t *testing.T) {
	const stopped = "Tool exceeded wall-clock limit of 90.25s."
	long := strings.Repeat("ä", 200)
	var await error
	synctest.Test(t, func(t *testing.T) {
		_, await = progress.Await(t.Context(), "rm", progress.Wait{}, func(ctx context.Context) (int, error) {
			progress.Report(ctx, progress.Update{Message: "asked"})
			<-ctx.Done()
			return 0, nil
		})
	})
	of := func(detail any) error {
		return fmt.Errorf("%w", &timeout.Error{Kind: timeout.ErrTotal, Limit: 90250 * time.Millisecond, Figures: timeout.Figures{Detail: detail}})
	}
	for _, tc := range []struct {
		name    string
		err     error
		partial string
		want    string
		last    string
	}{
		{"nothing to show", of(nil), "", stopped, ""},
		{"white space", of(nil), " \r\n\t", stopped, ""},
		{"output", of(nil), "State 17\n1", stopped + "\n\nPartial output:\nState 17\n1", ""},
		{"an update", of(&progress.Update{Progress: 37, Total: 100, Message: "file"}), "", stopped + "\nlast: file 37 of 100", "file 37 of 100"},
		{"both", of(&progress.Update{Message: "main.go"}), "x", stopped + "\nlast: main.go\n\nPartial output:\nx", "main.go"},
		{"an update that says nothing", of(&progress.Update{}), "", stopped, ""},
		{"a text", of(" half\n"), "", stopped + "\nlast: half", "half"},
		{"a long text", of(long), "", stopped + "\nlast: " + long[:256] + "...", long[:256] + "..."},
		{"a long text, cut within a character", of("x" + long), "", stopped + "\nlast: x" + long[:254] + "...", "x" + long[:254] + "..."},
		{"what has no text", of(struct{ Secret string }{"s"}), "", stopped, ""},
		{"a nil update", of((*progress.Update)(nil)), "", stopped, ""},
		{"a text that panics", of(panicking{}), "", stopped + "\nlast: %!v(PANIC=String method: boom)", "%!v(PANIC=String method: boom)"},
		{"nobody's answer", await, "", "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout.", ""},
		{"another error", errors.New("no such file"), "half", "no such file\n\nPartial output:\nhalf", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, toolcall.Text(tc.err, tc.partial)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o, _ := toolcall.OutcomeOf(tc.err); o.Last != tc.last {
				t.Errorf("outcome: %q", o.Last)
			}
		})
	}
}
