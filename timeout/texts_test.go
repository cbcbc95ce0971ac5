package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hostile is a detail, an error and a value of a panic each of whose methods calls a function of the
// test's.
type hostile struct{ do func() string }

func (h *hostile) String() string { return h.do() }
func (h *hostile) Error() string  { return h.do() }
func (h *hostile) Is(error) bool  { h.do(); return false }
func (h *hostile) As(any) bool    { h.do(); return false }
func (h *hostile) Unwrap() error  { h.do(); return nil }

// SPEC 3.24, 3.25: whatever the methods of a value do, everything that shows the value returns, within a bound
// of time and of size.
func TestHostileValues(t *testing.T) {
	var nested error
	nested = &hostile{func() string { panic(nested) }}
	for how, do := range map[string]func(release chan struct{}) string{
		"block":  func(release chan struct{}) string { <-release; return "late" },
		"panic":  func(chan struct{}) string { panic("text") },
		"panics": func(chan struct{}) string { panic(nested) },
		"Goexit": func(chan struct{}) string { runtime.Goexit(); return "" },
		"huge":   func(chan struct{}) string { return strings.Repeat("x", 1<<20) },
	} {
		for where, run := range map[string]func(ctx context.Context, v *hostile, opts ...timeout.Option) error{
			"detail": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				return timeout.Run(ctx, func(ctx context.Context) error { heartbeat.BeatWith(ctx, v); <-ctx.Done(); return nil }, opts...)
			},
			"late error": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				return timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return v }, opts...)
			},
			"error": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				return timeout.Run(ctx, func(ctx context.Context) error { return v }, opts...)
			},
			"wrapped error": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				return timeout.Run(ctx, func(ctx context.Context) error { return errors.Join(v, errTool) }, opts...)
			},
			"cause": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				ctx, cancel := context.WithCancelCause(ctx)
				return timeout.Run(ctx, func(ctx context.Context) error { cancel(v); <-ctx.Done(); return nil }, opts...)
			},
			"panic": func(ctx context.Context, v *hostile, opts ...timeout.Option) error {
				return timeout.Run(ctx, func(context.Context) error { panic(v) }, append(opts, timeout.WithRecover())...)
			},
		} {
			t.Run(how+"/"+where, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					const limit = 10 * time.Second
					release := make(chan struct{})
					v := &hostile{func() string { return do(release) }}
					var log bytes.Buffer
					var seen timeout.Snapshot
					begun := time.Now()
					err := run(t.Context(), v, timeout.Config{Idle: limit, Grace: 5 * time.Second},
						timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
						timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { seen = s }}))
					if took := time.Since(begun); took > limit+5*time.Second {
						t.Errorf("Run has returned after %v", took)
					}
					for name, show := range map[string]func() string{
						"Error": func() string { return shownBy(err) },
						"%+v": func() string {
							if _, ours := err.(fmt.Formatter); !ours {
								return "" // fmt calls the method itself
							}
							return fmt.Sprintf("%+v", err)
						},
						"%#v": func() string {
							if _, ours := err.(fmt.Formatter); !ours {
								return ""
							}
							return fmt.Sprintf("%#v", err)
						},
						"a log": func() string {
							var log bytes.Buffer
							slog.New(slog.NewTextHandler(&log, nil)).Info("", "execution", seen)
							return log.String()
						},
						"ExitCode": func() string { return fmt.Sprint(timeout.ExitCode(err)) },
						"Outcome":  func() string { o, _ := toolcall.OutcomeOf(err); return o.Last + toolcall.CauseOf(err) },
						"Text":     func() string { return toolcall.Text(err, "") + toolcall.Message(err) },
						"Update":   func() string { return progress.UpdateOf(seen.Detail).String() },
					} {
						begun := time.Now()
						if text := show(); len(text) > 3*texts.Max+20_000 || time.Since(begun) > 4*texts.Patience {
							t.Errorf("%s: %d bytes after %v", name, len(text), time.Since(begun))
						} else if how == "huge" && len(text) > texts.Max && !strings.Contains(text, " bytes more)") {
							t.Errorf("%s: cut without a count", name)
						}
					}
					if log.Len() > 5*texts.Max {
						t.Errorf("%d bytes of log", log.Len())
					}
					close(release)
					time.Sleep(time.Minute)
				})
			})
		}
	}
}

// shownBy is the text of an error of ours; one of the test's own blocks the test as it says.
func shownBy(err error) string {
	switch err := err.(type) {
	case *timeout.Error:
		return err.Error()
	case *timeout.PanicError:
		return err.Error()
	}
	return ""
}

// A stuckSlice and a stuckStruct cannot be compared, and a stuckFloat that is no number is not equal to itself.
type (
	stuckSlice  []func() string
	stuckMap    map[int]func() string
	stuckFunc   func() string
	stuckStruct struct{ do []func() string }
	stuckFloat  struct {
		f  float64
		do *func() string
	}
)

func (v stuckSlice) String() string  { return v[0]() }
func (v stuckMap) String() string    { return v[0]() }
func (v stuckFunc) String() string   { return v() }
func (v stuckStruct) String() string { return v.do[0]() }
func (v stuckFloat) String() string  { return (*v.do)() }

// SPEC 3.25: a value whose method does not return is asked once, however often its text is wanted.
func TestHostileValueIsAskedOnce(t *testing.T) {
	for name, made := range map[string]func(do func() string) any{
		"pointer":          func(do func() string) any { return &hostile{do} },
		"slice":            func(do func() string) any { return stuckSlice{do} },
		"map":              func(do func() string) any { return stuckMap{0: do} },
		"function":         func(do func() string) any { return stuckFunc(do) },
		"struct of slices": func(do func() string) any { return stuckStruct{[]func() string{do}} },
		"not a number":     func(do func() string) any { return stuckFloat{math.NaN(), &do} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				var asked atomic.Int32
				v := made(func() string { asked.Add(1); <-release; return "late" })
				for range 100 {
					if text := texts.Of(v); !strings.Contains(text, "did not return in time") {
						t.Errorf("%q", text)
					}
				}
				if asked.Load() != 1 {
					t.Errorf("asked %d times", asked.Load())
				}
				close(release)
				time.Sleep(time.Second)
				if text := texts.Of(v); text != "late" {
					t.Errorf("%q", text)
				}
			})
		})
	}
}

// SPEC 3.25: many values that give no text, as those of the tools that wait for one lock, are no more than a few
// seconds and a few goroutines in all.
func TestManyHostileValues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked atomic.Int32
		begun := time.Now()
		for range 1000 {
			texts.Of(&hostile{func() string { asked.Add(1); <-release; return "late" }})
		}
		if took := time.Since(begun); took > 4*texts.Patience || asked.Load() > 16 {
			t.Errorf("%d methods were waited for, %v", asked.Load(), took)
		}
		close(release)
		time.Sleep(time.Second)
		if text := texts.Of(&hostile{func() string { return "a text" }}); text != "a text" {
			t.Errorf("%q", text)
		}
	})
}

// SPEC 3.25: a value that contains itself has no text, and does not end the process by an overflow of the stack.
func TestValuesThatContainThemselves(t *testing.T) {
	slice, table := make([]any, 1), map[string]any{}
	slice[0], table["self"] = slice, table
	pair := &struct{ next any }{}
	pair.next = &slice
	wide := []any{1}
	for range 64 {
		wide = []any{wide, wide}
	}
	for name, tt := range map[string]struct {
		v    any
		ends bool
	}{
		"slice": {slice, false}, "map": {table, false}, "struct": {struct{ a any }{table}, false}, "pointer": {&slice, false}, "many parts": {wide, false},
		"pointer below": {pair, true}, "a tree": {map[string]any{"a": []any{1, "b", nil}}, true}, "bytes": {make([]byte, 200_000), true},
	} {
		if text := texts.Of(tt.v); strings.Contains(text, "contains itself") == tt.ends {
			t.Errorf("%s: %.100s", name, text)
		}
	}
}

// SPEC 3.25: nobody asks for the text of a detail that the verb does not show.
func TestHostileDetailIsNotAskedInVain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := &hostile{func() string { t.Error("asked"); return "" }}
		err := &timeout.Error{Kind: timeout.KindTotal, Limit: time.Second, Detail: v, Err: v, Cause: v}
		for _, verb := range []string{"%v", "%s", "%q", "%x", "%d"} {
			_ = fmt.Sprintf(verb, err)
		}
	})
}
