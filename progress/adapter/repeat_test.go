package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func idempotent() *adapter.Server {
	return adapter.NewServer(&adapter.Options{Idempotency: true}, false)
}

// repeat is adapter.Repeat for a key.
func repeat[R any](ctx context.Context, s *adapter.Server, from adapter.Caller, key string, meta map[string]any, content any, call func() (R, error)) (R, error) {
	all := map[string]any{request.IdempotencyKey: key}
	maps.Copy(all, meta)
	return adapter.Repeat(ctx, s, all, func() adapter.Caller { return from }, content, call)
}

// SPEC 8.8: a call that comes again gets the result of the first, as long as that is kept, and one that could
// not be kept is made again.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := idempotent()
		calls := 0
		call := func(ctx context.Context, key, content string, err error) (string, error) {
			return repeat(ctx, a, adapter.Caller{Session: "c"}, key, nil, content, func() (string, error) { calls++; return fmt.Sprint("result ", calls), err })
		}
		want := func(key, content, result string) {
			t.Helper()
			if got, err := call(t.Context(), key, content, nil); got != result || err != nil {
				t.Errorf("%s, %s: %q, %v, want %q", key, content, got, err, result)
			}
		}
		want("k", "a", "result 1")
		want("k", "a", "result 1")
		want("k", "b", "result 2") // another call under the key
		want("l", "a", "result 3")
		time.Sleep(10*time.Minute - 1)
		want("k", "a", "result 1")
		time.Sleep(time.Nanosecond)
		want("k", "a", "result 4")

		failed := errors.New("failed")
		if _, err := call(t.Context(), "e", "a", failed); err != failed {
			t.Error(err)
		}
		want("e", "a", "result 6")

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := call(gone, "g", "a", nil); got != "result 7" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		want("g", "a", "result 8") // that of one who has gone may be half a result
		for range 100 {
			if got, err := call(gone, "g", "a", nil); got != "result 8" || err != nil {
				t.Fatalf("a result that is there, for one who has gone: %q, %v", got, err)
			}
		}
	})
}

// SPEC 8.8: what is no answer yet is not kept, nor what was aborted, nor what a client has given too little time for.
func TestAnswersThatAreNotKept(t *testing.T) {
	const outcome = `{"content":[],"_meta":{"io.github.tooldeadline/outcome":{"exitCode":%d}}}`
	budget := map[string]any{policy.BudgetKey: policy.Budget{Left: time.Minute}.Object()}
	for _, tc := range []struct {
		name   string
		result string
		meta   map[string]any
		kept   bool
	}{
		{"a result", `{"content":[]}`, nil, true},
		{"none", `null`, nil, false},
		{"no JSON", `{`, nil, false},
		{"questions", `{"inputRequests":{"a":{}}}`, nil, false},
		{"no questions yet", `{"resultType":"input_required","requestState":"later"}`, nil, false},
		{"complete", `{"resultType":"complete","content":[]}`, nil, true},
		{"aborted", fmt.Sprintf(outcome, timeout.ExitAborted), nil, false},
		{"stopped", fmt.Sprintf(outcome, timeout.ExitTimeout), nil, true},
		{"stopped, within a budget", fmt.Sprintf(outcome, timeout.ExitTimeout), budget, false},
		{"a result, within a budget", `{"content":[]}`, budget, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := idempotent()
			calls := 0
			for range 2 {
				_, err := repeat(t.Context(), a, adapter.Caller{Session: "c"}, "k", tc.meta, nil, func() (json.RawMessage, error) {
					calls++
					return json.RawMessage(tc.result), nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if kept := calls == 1; kept != tc.kept {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A second call waits for the first that is still running, and takes its place where that has no result to keep.
func TestAnswersOfARunningCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := idempotent()
		first, cancelFirst := context.WithCancel(t.Context())
		calls := make(chan int, 10)
		do := func(ctx context.Context) (string, error) {
			return repeat(ctx, a, adapter.Caller{Session: "c"}, "k", nil, nil, func() (string, error) {
				calls <- 1
				select {
				case <-ctx.Done():
					return "partial", nil
				case <-time.After(time.Minute):
					return "whole", nil
				}
			})
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := do(first); got != "partial" || err != nil {
				t.Error(got, err)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if got, err := do(t.Context()); got != "whole" || err != nil {
					t.Error(got, err)
				}
			})
		}
		impatient, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if got, err := do(impatient); got != "" || err != errors.ErrUnsupported {
				t.Error(got, err)
			}
		})
		synctest.Wait()
		cancel(errors.ErrUnsupported)
		synctest.Wait()
		cancelFirst()
		wg.Wait()
		if len(calls) != 2 {
			t.Errorf("%d calls, want 2", len(calls))
		}
	})
}

// A call that waits for the first does not run when its context ends together with the first, which has no result to keep.
func TestAnswerThatComesTooLate(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			a := idempotent()
			ctx, cancel := context.WithCancel(t.Context())
			do := func(ctx context.Context, call func() (string, error)) (string, error) {
				return repeat(ctx, a, adapter.Caller{Session: "c"}, "k", nil, nil, call)
			}
			go do(t.Context(), func() (string, error) {
				time.Sleep(time.Minute)
				cancel()
				return "", errors.ErrUnsupported
			})
			synctest.Wait()
			if got, err := do(ctx, func() (string, error) { return "run", nil }); got != "" || err != context.Canceled {
				t.Error(got, err)
			}
			synctest.Wait()
		})
	}
}

// Answers that are kept are bounded in number and in bytes, and a panic leaves nothing that anybody would wait for.
func TestAnswersAreBounded(t *testing.T) {
	for _, tc := range []struct {
		name        string
		size, calls int
		kept        int // of those before the last
	}{
		{"number", 2, 1500, 999},
		{"bytes", 4 << 20, 10, 3},
		{"too large", 16<<20 + 1, 3, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := sized(tc.size)
			for i := range tc.calls {
				a.do(t, "c", fmt.Sprint(i))
			}
			a.calls = 0
			for i := tc.calls - 1; i >= tc.calls-1-tc.kept; i-- {
				a.do(t, "c", fmt.Sprint(i))
			}
			if a.calls != 0 {
				t.Errorf("%d of the newest were forgotten", a.calls)
			}
			if a.do(t, "c", fmt.Sprint(tc.calls-2-tc.kept)); a.calls != 1 {
				t.Error("more is kept than may be")
			}
		})
	}
	a := idempotent()
	do := func(call func() (int, error)) (int, error) {
		defer func() { _ = recover() }()
		return repeat(t.Context(), a, adapter.Caller{Session: "c"}, "p", nil, nil, call)
	}
	_, _ = do(func() (int, error) { panic("boom") })
	if got, err := do(func() (int, error) { return 1, nil }); got != 1 || err != nil {
		t.Error(got, err)
	}
}

// counted are answers of a size, and how many calls were made for them.
type counted struct {
	*adapter.Server
	result json.RawMessage
	calls  int
}

// sized returns answers of a number of bytes.
func sized(bytes int) *counted {
	return &counted{Server: idempotent(), result: json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`)}
}

func (c *counted) do(t *testing.T, client, key string) {
	_, _ = repeat(t.Context(), c.Server, adapter.Caller{Principal: client}, key, nil, nil, func() (json.RawMessage, error) { c.calls++; return c.result, nil })
}

// SPEC 11.7: a client with many calls, or large results, pushes out its own answers and no other's.
func TestAnswersAreShared(t *testing.T) {
	for size, calls := range map[int]int{2: 3000, 1 << 20: 40} {
		a := sized(size)
		a.do(t, "modest", "a")
		for i := range calls {
			a.do(t, "greedy", fmt.Sprint(i))
		}
		a.do(t, "modest", "b")
		for i := range 20 {
			a.do(t, "another", fmt.Sprint(i))
		}
		a.calls = 0
		a.do(t, "greedy", fmt.Sprint(calls-1)) // what it has lost does not count against it
		a.do(t, "modest", "a")
		if a.do(t, "modest", "b"); a.calls != 0 {
			t.Errorf("results of %d bytes: %d calls were made again", size, a.calls)
		}
		if a.do(t, "greedy", "a"); a.calls != 1 {
			t.Error("a client has got another's result")
		}
		if a.do(t, "greedy", "0"); a.calls != 2 {
			t.Error("the first result of the greedy client is there")
		}
	}
}

func ExampleRepeat() {
	s := adapter.NewServer(&adapter.Options{Idempotency: true}, false)
	from := func() adapter.Caller { return adapter.Caller{Principal: "ann"} }
	for range 2 {
		result, _ := adapter.Repeat(context.Background(), s, map[string]any{request.IdempotencyKey: "1"}, from, "its params", func() (string, error) {
			fmt.Println("called")
			return "result", nil
		})
		fmt.Println(result)
	}
	// Output:
	// called
	// result
	// result
}
