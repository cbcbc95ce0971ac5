package adapter_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 10.1, 11.2: a soft limit, and that a tool may be called as a task, is only said where tasks are offered.
func TestListing(t *testing.T) {
	p := &policy.Policy{Tools: map[string]policy.Tool{"slow": {Soft: 30 * s}, "only": {Soft: -1, TaskOnly: true}}}
	tasks := new(task.Tasks)
	type said struct {
		Declared bool
		Soft     time.Duration
		Support  string
	}
	for _, tc := range []struct {
		name   string
		o      adapter.Options
		tool   string
		client adapter.Caller
		want   said
	}{
		{"tasks", adapter.Options{Tasks: tasks, Declare: true}, "slow", legacy, said{true, 30 * s, "optional"}},
		{"only a task", adapter.Options{Tasks: tasks, Declare: true}, "only", legacy, said{true, -1, "required"}},
		{"never a task", adapter.Options{Tasks: tasks, Declare: true}, "quick", legacy, said{true, 0, ""}},
		{"of the server", adapter.Options{Tasks: tasks, Declare: true}, "", legacy, said{true, 0, ""}},
		{"a later protocol", adapter.Options{Tasks: tasks, Declare: true}, "slow", declared, said{true, 30 * s, ""}},
		{"undeclared", adapter.Options{Tasks: tasks}, "slow", legacy, said{false, 0, "optional"}},
		{"continuations", adapter.Options{Continuation: new(adapter.Continuation), Declare: true}, "slow", legacy, said{true, 0, ""}},
	} {
		tc.o.Policy = p
		var got said
		limits, support, _ := adapter.NewServer(&tc.o, false).Listing(tc.tool, tc.client)
		if got.Support = support; limits != nil {
			got.Declared, got.Soft = true, limits.Soft
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}
