package adapter_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// Whatever a client sends, the answer is JSON or an error with a code.
func FuzzServe(f *testing.F) {
	for _, p := range []string{``, `null`, `{}`, `[]`, `{"taskId":"x"}`, `{"taskId":null}`, `{"taskId":"\u0000"}`, `{"cursor":"1"}`,
		`{"taskId":"x","inputResponses":{"1.ok":{}}}`, `{"taskId":"x","inputResponses":null}`, `{"id":"x","cancel":true}`, `{"id":"x.2"}`, `{"id":"\ud800"}`, "\xff", `{"taskId":1e9}`} {
		f.Add([]byte(p))
	}
	tasks, c := new(task.Tasks), new(adapter.Continuation)
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, client := range []adapter.Caller{legacy, declared, knowing, {}} {
			for _, method := range methods {
				got, err := adapter.Serve(t.Context(), tasks, nil, client, method, p)
				check(t, got, err)
			}
			got, err := waitTool(t.Context(), c, tasks, client, string(p), nil)
			check(t, got, err)
		}
	})
}

func check(t *testing.T, got map[string]any, err error) {
	t.Helper()
	if e := (*task.Error)(nil); err != nil && (!errors.As(err, &e) || e.Code >= 0 || e.Message == "") {
		t.Errorf("%v", err)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}
