package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// SPEC 3.13.
func TestPanicReachesTheCaller(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sleep time.Duration // 2s is after the limit, within the grace
	}{{"in time", 0}, {"after the limit", 2 * time.Second}} {
		for _, value := range []any{"boom", 7, nil, &struct{ x int }{1}} {
			t.Run(fmt.Sprintf("%s/%T", tc.name, value), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					finished := 0
					v := recovered(func() {
						_ = timeout.Run(t.Context(), func(context.Context) error {
							time.Sleep(tc.sleep)
							blowsUp(value)
							return nil
						}, timeout.Config{Total: time.Second}, timeout.WithName("scan"), timeout.WithHooks(timeout.Hooks{
							Finished: func(context.Context, timeout.Snapshot) { finished++ },
						}))
					})
					err, ok := v.(error)
					var p *timeout.PanicError
					if !ok || !errors.As(err, &p) || p.Tool != "scan" || (value != nil && p.Value != value) || (value == nil && !errors.As(err, new(*runtime.PanicNilError))) {
						t.Fatalf("recovered %v (%T)", v, v)
					}
					if !strings.Contains(string(p.Stack), "blowsUp") || !strings.Contains(err.Error(), "blowsUp") ||
						!strings.HasPrefix(err.Error(), fmt.Sprint(p.Value)) {
						t.Errorf("a crash would not show value and stack: %v", err)
					}
					if finished != 1 {
						t.Errorf("hook Finished called %d times", finished)
					}
				})
			})
		}
		// Code that recovers an error may compare it, so it comes as it is.
		for _, value := range []error{io.ErrClosedPipe, http.ErrAbortHandler, uncomparable{}, &timeout.PanicError{Value: 1}} {
			t.Run(fmt.Sprintf("%s/%T", tc.name, value), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var p *timeout.PanicError
					v := recovered(func() {
						_ = timeout.Run(t.Context(), func(context.Context) error {
							time.Sleep(tc.sleep)
							blowsUp(value)
							return nil
						}, timeout.Config{Total: time.Second}, timeout.WithHooks(timeout.Hooks{
							Finished: func(_ context.Context, s timeout.Snapshot) { errors.As(s.Err, &p) },
						}))
					})
					if reflect.TypeOf(v) != reflect.TypeOf(value) || reflect.ValueOf(v).Comparable() && v != value {
						t.Errorf("recovered %v (%T), want the very same error", v, v)
					}
					if p == nil || !strings.Contains(string(p.Stack), "blowsUp") {
						t.Errorf("the hook did not learn where it was: %+v", p)
					}
				})
			})
		}
	}
}

// A bug that the runtime finds is not compared, so its stack comes with it.
func TestRuntimeErrorHasItsStack(t *testing.T) {
	v := recovered(func() {
		_ = timeout.Run(context.Background(), func(context.Context) error {
			var none []int
			return fmt.Errorf("%d", none[len(os.Args)])
		})
	})
	err, ok := v.(error)
	var bug runtime.Error
	if !ok || !errors.As(err, &bug) || !strings.Contains(err.Error(), "TestRuntimeErrorHasItsStack") {
		t.Errorf("recovered %v (%T)", v, v)
	}
}

// net/http aborts a handler without a word when it panics with the very http.ErrAbortHandler.
func TestAbortHandler(t *testing.T) {
	for name, handle := range map[string]func(ctx context.Context, fn func(context.Context) error){
		"one": func(ctx context.Context, fn func(context.Context) error) { _ = timeout.Run(ctx, fn) },
		"nested": func(ctx context.Context, fn func(context.Context) error) {
			_ = timeout.Run(ctx, func(ctx context.Context) error { return timeout.Run(ctx, fn, timeout.WithName("inner")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handle(r.Context(), func(context.Context) error {
					w.WriteHeader(http.StatusOK)
					panic(http.ErrAbortHandler)
				})
			}))
			server.Config.ErrorLog = log.New(&said, "", 0)
			server.Start()
			resp, err := server.Client().Get(server.URL)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("the answer was not aborted")
			}
			server.Close() // after which nobody writes to said
			if said.Len() > 0 {
				t.Errorf("the server says: %s", said.String())
			}
		})
	}
}

const crashChildEnv = "TOOLDEADLINE_CRASH_CHILD"

// TestCrashChild is no test, but the process that TestCrashShowsTheStack lets crash.
func TestCrashChild(t *testing.T) {
	switch os.Getenv(crashChildEnv) {
	case "error":
		_ = timeout.Run(context.Background(), func(context.Context) error { blowsUp(io.ErrClosedPipe); return nil })
	case "value":
		_ = timeout.Run(context.Background(), func(context.Context) error { blowsUp("boom"); return nil })
	}
}

// The panic that ends the process says where it came from.
func TestCrashShowsTheStack(t *testing.T) {
	for mode, text := range map[string]string{"error": io.ErrClosedPipe.Error(), "value": "boom"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
		cmd.Env = append(os.Environ(), crashChildEnv+"="+mode)
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("panic: "+text)) || !bytes.Contains(out, []byte("blowsUp")) {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
