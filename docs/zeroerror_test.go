package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/host"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// zeroErrors has the zero value of each exported error type, by its name.
var zeroErrors = map[string]error{
	"host.EndedError":         &host.EndedError{},
	"procgroup.Reason":        procgroup.Reason(0),
	"procgroup.TypingError":   &procgroup.TypingError{},
	"request.Error":           &request.Error{},
	"stream.OutageError":      &stream.OutageError{},
	"stream.ReopenError":      &stream.ReopenError{},
	"stream.SilenceError":     &stream.SilenceError{},
	"task.Error":              &task.Error{},
	"timeout.ConfigError":     &timeout.ConfigError{},
	"timeout.Error":           &timeout.Error{},
	"timeout.Kind":            timeout.Kind(0),
	"timeout.PanicError":      &timeout.PanicError{},
	"toolcall.CancelledError": &toolcall.CancelledError{},
}

// SPEC 3.24. No method of the zero value of an exported error type panics: tests of users make such values.
func TestZeroErrors(t *testing.T) {
	exported := map[string]bool{}
	method := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?([A-Z]\w*)\) Error\(\) string`)
	eachFile(t, isPublic, func(file, text string) {
		for _, m := range method.FindAllStringSubmatch(text, -1) {
			exported[path.Base(filepath.ToSlash(filepath.Dir(file)))+"."+m[1]] = true
		}
	})
	if diff := cmp.Diff(slices.Sorted(maps.Keys(exported)), slices.Sorted(maps.Keys(zeroErrors))); diff != "" {
		t.Errorf("exported error types of the code (-) and of this test (+):\n%s", diff)
	}
	for name, err := range zeroErrors {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			for i, v := 0, reflect.ValueOf(err); i < v.NumMethod(); i++ {
				if m := v.Method(i); m.Type().NumIn() == 0 {
					m.Call(nil)
				}
			}
			errors.Is(err, context.Canceled)
			errors.As(err, new(*timeout.Error))
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				if text := fmt.Sprintf(verb, err); strings.Contains(text, "PANIC") { // a panic that fmt has recovered
					t.Errorf("%s is %s", verb, text)
				}
			}
			slog.New(slog.DiscardHandler).Info("", "error", err)
			_ = slog.AnyValue(err).Resolve()
			if _, err := json.Marshal(err); err != nil {
				t.Error(err)
			}
			_ = timeout.ExitCode(err)
		})
	}
}
