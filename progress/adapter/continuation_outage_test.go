package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A lateStore fails its next Get, and takes a while to say so.
type lateStore struct {
	task.Store
	takes time.Duration
}

func (s *lateStore) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if s.takes == 0 {
		return s.Store.Get(ctx, owner, id)
	}
	time.Sleep(s.takes)
	s.takes = 0
	return task.Record{}, errors.New("no connection")
}

// SPEC 12.5: a cancel that the store has not taken is not answered as if it had, whether the store says so before the
// wait is over or after it.
func TestContinuationCancelsInAnOutage(t *testing.T) {
	const wait = 2 * s
	for _, takes := range []time.Duration{1, wait - 1, wait, wait + 1} {
		bubble(t, fmt.Sprint(takes), func(t *testing.T) {
			store := &lateStore{Store: new(task.Memory)}
			runs := &task.Tasks{Store: store}
			defer runs.Close()
			call := adapter.Call{Tool: "build", Caller: adapter.Caller{Version: "2025-06-18", Session: "one"}, Continuation: &adapter.Continuation{After: wait}}
			var cause error
			_, record, err := adapter.Do(t.Context(), runs, call, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (reply, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return reply{}, cause
			}, encodeAsking)
			if err != nil {
				t.Fatal(err)
			}
			cancel := json.RawMessage(fmt.Sprintf(`{"id":%q,"cancel":true}`, record.ID))
			store.takes = takes
			for _, want := range []string{"The store of the calls cannot be reached", ""} {
				fields, err := call.Continuation.Wait(t.Context(), runs, call.Caller, cancel, nil)
				if text := said(fields); err != nil || !strings.HasPrefix(text, want) || (want == "") != (cause != nil) {
					t.Errorf("%q, %v, want %q; the tool has ended because of %v", text, err, want, cause)
				}
			}
		})
	}
}
