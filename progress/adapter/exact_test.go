package adapter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// What is read of a client's message is what the next one reads of it: where that may differ, it is refused. All
// places of this module that read such messages are here, but the timeoutMs of a request, which is in toolcall.
func TestExactKeys(t *testing.T) {
	refuses := map[string]func(params string) bool{
		"Cancelled": func(message string) bool {
			_, _, ok := adapter.Cancelled([]byte(message))
			return !ok
		},
		"Serve": func(params string) bool {
			_, err := adapter.Serve(t.Context(), new(task.Tasks), nil, adapter.Caller{Version: "2025-11-25", Session: "s"}, "tasks/get", []byte(params))
			var bad *task.Error
			return errors.As(err, &bad) && bad.Code == codeInvalidParams
		},
		"Wait": func(arguments string) bool {
			fields, err := waitTool(t.Context(), new(adapter.Continuation), new(task.Tasks), adapter.Caller{Session: "s"}, arguments, nil)
			text := fmt.Sprint(fields["content"])
			return err == nil && fields["isError"] == true && strings.Contains(text, "the key")
		},
		"Declaration": func(object string) bool {
			return json.Unmarshal([]byte(object), new(policy.Declaration)) != nil
		},
	}
	for name, texts := range map[string][]string{
		"Cancelled": {`{"method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}`, `{"method":"notifications/cancelled","params":{"requestId":1,"RequestID":2}}`,
			`{"method":"notifications/cancelled","params":{"REQUESTID":2}}`, `{"method":"notifications/cancelled","params":{"requestId":1,"request\u0049d":2}}`,
			`{"method":"notifications/cancelled","Method":"ping","params":{"requestId":1}}`, `{"method":"notifications/cancelled","params":{"requestId":1},"params":{"requestId":2}}`},
		"Serve":       {`{"taskId":"a","TaskID":"b"}`, `{"taskId":"a","taskId":"b"}`, `{"taskID":"a"}`},
		"Wait":        {`{"id":"a","Cancel":true}`, `{"id":"a","id":"b"}`, `{"ID":"a"}`},
		"Declaration": {`{"totalMs":1,"idleMs":1,"totalMs":2}`, `{"totalMs":1,"idleMs":1,"methods":{"a":{"totalMs":1,"idleMs":1},"a":{"totalMs":2,"idleMs":1}}}`},
	} {
		for _, text := range texts {
			if !refuses[name](text) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

func ExampleUnmarshal() {
	var call struct {
		Method string `json:"method"`
	}
	err := adapter.Unmarshal([]byte(`{"method":"tools/call","Method":"ping"}`), &call)
	fmt.Println(call.Method, err)
	// Output: tools/call the key "Method" is to be spelled "method"
}

func ExampleSetMember() {
	fmt.Printf("%s\n", adapter.SetMember([]byte(`{"name":"build","_meta":{"n":1.50}}`), []byte(`"t1"`), "_meta", "progressToken"))
	// Output: {"name":"build","_meta":{"n":1.50,"progressToken":"t1"}}
}

func ExampleSetMember_remove() {
	fmt.Printf("%s\n", adapter.SetMember([]byte(`{"name":"build","outputSchema":{},"x":1}`), nil, "outputSchema"))
	// Output: {"name":"build","x":1}
}
