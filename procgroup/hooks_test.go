//go:build linux

package procgroup_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// everyHook makes each hook that there is call f, with the context and the snapshot that it gets.
func everyHook(f func(name string, ctx context.Context, s timeout.Snapshot)) (hooks timeout.Hooks) {
	all := reflect.ValueOf(&hooks).Elem()
	for i := range all.NumField() {
		name, of := all.Type().Field(i).Name, all.Field(i).Type()
		all.Field(i).Set(reflect.MakeFunc(of, func(args []reflect.Value) []reflect.Value {
			f(name, args[0].Interface().(context.Context), args[1].Interface().(timeout.Snapshot))
			return args[:of.NumOut()] // the context, where one is wanted
		}))
	}
	return hooks
}

// SPEC 6.24: every hook that an execution has is called for a command, too, but for those of functions that are abandoned,
// and Stalled, for which a process has to stand still: package timeout calls it for every execution.
func TestEveryHook(t *testing.T) {
	var r *Run
	var id uint64
	limits := timeout.Config{Idle: 10 * time.Second, Total: time.Minute, Reserve: 57 * time.Second}
	called := map[string]bool{"Abandoned": true, "Returned": true, "Stalled": true}
	Test(t, Scenario{
		Name:   "all",
		Script: Script{lasts},
		Set:    func(run *Run) { r = run },
		Options: []procgroup.Option{procgroup.Limits(limits), procgroup.WithOptions(timeout.WithHooks(everyHook(func(name string, ctx context.Context, s timeout.Snapshot) {
			called[name] = true
			r.Say("%s %v", name, s.State)
			want := limits
			want.Grace = 5*time.Second + time.Second
			of := timeout.FromContext(ctx).ID()
			if name == "Context" { // which is the caller's
				id, of = s.ID, s.ID
			}
			if s.Tool != "tool" || s.ID != id || of != id || s.Limits != want {
				r.Errorf("%s was told %+v, of %d", name, s, of)
			}
		})))},
		Want: []string{
			"0s test: Context running, Started running",
			"3s test: Closing running",
			"8s test: NearIdle near idle",
			"10s 1: SIGTERM, dies of SIGTERM",
			"10s test: Exceeded stopping, Finished ended",
			"10s wait: idle timeout 124",
		},
		Check: is(outcome{Message: "tool process timed out after 10000ms without output.", Error: "No progress for 10s (idle timeout). tool wrote nothing."}),
	})
	for _, field := range reflect.VisibleFields(reflect.TypeFor[timeout.Hooks]()) {
		if !called[field.Name] {
			t.Errorf("%s was not called", field.Name)
		}
	}
}
