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
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/host"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
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

// Of these fields the program that makes the error says what is in them.
var ownWords = []string{
	"timeout.ConfigError.Accepted", "procgroup.TypingError.Effect", "request.Error.Doing",
	"task.Error.Message", // the text of a message, and not a part of a line
}

// SPEC 3.25. A name, a value or words from elsewhere make the text of no error long, or more than one line.
func TestErrorsAreLines(t *testing.T) {
	errs := maps.Clone(zeroErrors)
	errs["adapter.AmbiguousError"] = &adapter.AmbiguousError{}
	for name, err := range errs {
		v := reflect.ValueOf(err)
		if v.Kind() != reflect.Pointer {
			continue // a number
		}
		made := reflect.New(v.Elem().Type())
		fill(name, made.Elem())
		err := made.Interface().(error)
		for _, verb := range []string{"%v", "%+v"} {
			if text := fmt.Sprintf(verb, err); len(text) > 2000 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%s, %s: %d bytes, %.300q", name, verb, len(text), text)
			}
		}
	}
}

// fill sets the strings in v, which is a field of the given name or an error, but not those in other errors.
func fill(name string, v reflect.Value) {
	switch {
	case slices.Contains(ownWords, name) || !v.CanSet():
	case v.Kind() == reflect.String:
		v.SetString("a\nb\x1b[2J" + strings.Repeat("c", 1<<20))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}
