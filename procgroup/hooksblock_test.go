//go:build linux

package procgroup_test

import (
	"context"
	"log/slog"
	"os/exec"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A stuckHandler writes to a stderr that nobody reads.
type stuckHandler struct{ release chan struct{} }

func (h stuckHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h stuckHandler) Handle(context.Context, slog.Record) error { <-h.release; return nil }
func (h stuckHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h stuckHandler) WithGroup(string) slog.Handler             { return h }

// SPEC 3.24, 6.11: no hook and no log handler keeps a tree from being killed, or the call from returning.
func TestHooksThatBlockKeepNoTree(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	places := map[string]timeout.Option{"logger": timeout.WithLogger(slog.New(stuckHandler{release}))}
	hooks := reflect.TypeFor[timeout.Hooks]()
	for i := range hooks.NumField() {
		var h timeout.Hooks
		f := reflect.ValueOf(&h).Elem().Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value {
			<-release
			return slices.Repeat([]reflect.Value{reflect.Zero(reflect.TypeFor[context.Context]())}, f.Type().NumOut())
		}))
		places[hooks.Field(i).Name] = timeout.WithHooks(h)
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			var r *procgroup.Result
			var err error
			go func() {
				defer close(done)
				r, err = procgroup.Run(context.Background(), exec.Command("sleep", "120"), procgroup.WithKillGrace(200*time.Millisecond),
					procgroup.WithLimits(timeout.Config{Total: shortLimit, Reserve: time.Second}), procgroup.WithOptions(place))
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("hangs")
			}
			if timeout.ExitCode(err) != 124 {
				t.Errorf("%+v", err)
			}
			if r != nil && (r.State == nil || len(r.Survivors) > 0) {
				t.Errorf("%+v", r)
			}
			if never := name == "Context" || name == "Started"; never != (r == nil) {
				t.Errorf("a result: %v", r != nil)
			}
		})
	}
}
