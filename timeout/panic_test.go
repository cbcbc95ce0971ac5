package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

//go:noinline
func blowsUp(v any) { panic(v) }

//go:noinline
func blowsUpElsewhere(v any) { panic(v) }

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// uncomparable errors must not make errors.Is panic.
type uncomparable struct{ _ []int }

func (uncomparable) Error() string { return "uncomparable" }

// SPEC 3.13: an error comes as it is, since code that recovers it may compare it; any other value, and a bug that the runtime
// finds, comes as an error that shows value and stack.
func TestPanicReachesTheCaller(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		asIs  bool
	}{
		"text": {"boom", false}, "nil": {nil, false}, "pointer": {&struct{ x int }{1}, false}, "runtime error": {new(runtime.PanicNilError), false},
		"error": {io.ErrClosedPipe, true}, "uncomparable error": {uncomparable{}, true}, "our error": {&timeout.PanicError{Value: 1}, true},
	} {
		for _, sleep := range []time.Duration{0, 2 * time.Second} { // the latter is after the limit, within the grace
			t.Run(fmt.Sprintf("%s after %v", name, sleep), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var told *timeout.PanicError
					v := recovered(func() {
						_ = timeout.Run(t.Context(), func(context.Context) error {
							time.Sleep(sleep)
							blowsUp(tt.value)
							return nil
						}, timeout.Config{Total: time.Second}, timeout.WithName("scan"), timeout.WithHooks(timeout.Hooks{
							Finished: func(_ context.Context, s timeout.Snapshot) { errors.As(s.Err, &told) },
						}))
					})
					if told == nil || !strings.Contains(string(told.Stack), "blowsUp") {
						t.Errorf("Finished was told %+v", told)
					}
					if tt.asIs {
						if reflect.TypeOf(v) != reflect.TypeOf(tt.value) || reflect.ValueOf(v).Comparable() && v != tt.value {
							t.Errorf("recovered %v (%T), want the very same error", v, v)
						}
						return
					}
					var p *timeout.PanicError
					err, ok := v.(error)
					if !ok || !errors.As(err, &p) || p.Tool != "scan" || tt.value != nil && p.Value != tt.value || tt.value == nil && !errors.As(err, new(*runtime.PanicNilError)) {
						t.Fatalf("recovered %v (%T)", v, v)
					}
					if text := err.Error(); !strings.HasPrefix(text, fmt.Sprint(p.Value)) || !strings.Contains(text, "blowsUp") {
						t.Errorf("a crash would not show value and stack: %s", text)
					}
				})
			})
		}
	}
}

// SPEC 3.13: the panic of a nested execution arrives as what it was, and one that was recovered is not taken for another
// that comes later.
func TestNestedPanic(t *testing.T) {
	inner := func(value any) func(context.Context) error {
		return func(ctx context.Context) error {
			return timeout.Run(ctx, func(context.Context) error { blowsUp(value); return nil }, timeout.WithName("inner"))
		}
	}
	for name, tt := range map[string]struct {
		fn          func(context.Context) error
		tool, where string
		value       any
	}{
		"an error": {inner(io.ErrClosedPipe), "inner", "blowsUp", io.ErrClosedPipe},
		"a text":   {inner("boom"), "inner", "blowsUp", "boom"},
		"another": {func(ctx context.Context) error {
			recovered(func() { _ = inner(io.ErrClosedPipe)(ctx) })
			blowsUpElsewhere(uncomparable{})
			return nil
		}, "outer", "blowsUpElsewhere", uncomparable{}},
	} {
		var p *timeout.PanicError
		err := timeout.Run(t.Context(), tt.fn, timeout.WithRecover(), timeout.WithName("outer"))
		if !errors.As(err, &p) || !reflect.DeepEqual(p.Value, tt.value) || p.Tool != tt.tool || !strings.Contains(string(p.Stack), tt.where) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if v := recovered(func() { _ = timeout.Run(t.Context(), inner(io.ErrClosedPipe)) }); v != io.ErrClosedPipe {
		t.Errorf("recovered %v", v)
	}
}

const crashChildEnv = "TOOLDEADLINE_CRASH_CHILD"

// SPEC 3.13: the panic that ends the process says where it came from. The process is this test again.
func TestCrashShowsTheStack(t *testing.T) {
	values := map[string]any{"error": io.ErrClosedPipe, "value": "boom"}
	if v := values[os.Getenv(crashChildEnv)]; v != nil {
		_ = timeout.Run(context.Background(), func(context.Context) error { blowsUp(v); return nil })
	}
	for mode, v := range values {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashShowsTheStack$")
		cmd.Env = append(os.Environ(), crashChildEnv+"="+mode)
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, fmt.Append(nil, "panic: ", v)) || !bytes.Contains(out, []byte("blowsUp")) {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
