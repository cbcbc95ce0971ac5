package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// SPEC 6.23, 14.1: the page shows what a command that ended well has left behind, in each form, in the list and by itself.
func TestLeftovers(t *testing.T) {
	const left = "Killed because the command had ended: <sleep> (process 4711).\nAnother process still held the output; what it wrote later may be missing."
	const line = "Killed because the command had ended: <sleep> (process 4711). Another process still held the output; what it wrote later may be missing."
	var id uint64
	c := &command.Command{
		Name:     "leftovers",
		Describe: func(bool) []byte { return nil },
		Conclude: func(outcome error) ([]slog.Attr, string, error) { return nil, left + "\n", outcome },
	}
	err := command.Run(t.Context(), c, func(ctx context.Context) error {
		id = timeout.FromContext(ctx).ID()
		return nil
	}, []timeout.Option(nil))
	if err != nil {
		t.Fatal(err)
	}
	h := inspect.Handler(inspect.Options{})
	one := fmt.Sprintf("/?id=%d", id)
	for target, want := range map[string]string{
		"/?tool=leftovers":             line,
		one:                            line,
		"/?tool=leftovers&format=html": html.EscapeString(left),
		one + "&format=html":           html.EscapeString(left),
	} {
		if got := ask(h, "GET", target, nil); got.code != 200 || strings.Count(got.body, want) != 1 {
			t.Errorf("%s: %d, no %q in\n%s", target, got.code, want, got.body)
		}
	}
	type row struct{ Outcome, Leftovers string }
	var alone row
	var list struct{ Recent []row }
	for target, to := range map[string]any{one + "&format=json": &alone, "/?tool=leftovers&format=json": &list} {
		if err := json.Unmarshal([]byte(ask(h, "GET", target, nil).body), to); err != nil {
			t.Fatal(err)
		}
	}
	if want := (row{"ok", left}); alone != want || len(list.Recent) != 1 || list.Recent[0] != want {
		t.Errorf("%+v, %+v", alone, list)
	}
}
