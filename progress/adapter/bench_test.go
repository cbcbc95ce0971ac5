package adapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A call that returns at once, and might have become a task: the cost of that.
func BenchmarkDo(b *testing.B) {
	run := tool(timeout.Default(), func(context.Context) (string, error) { return "done", nil })
	for name, call := range map[string]adapter.Call{
		"plain":     {Tool: "build", Caller: knowing},
		"task":      {Tool: "build", Caller: declared, Soft: time.Minute},
		"continued": {Tool: "build", Caller: host, Continuation: &adapter.Continuation{After: time.Minute}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			tasks := new(task.Tasks)
			for b.Loop() {
				if _, record, err := adapter.Do(b.Context(), tasks, call, run, encode); record != nil || err != nil {
					b.Fatal(record, err)
				}
			}
		})
	}
}
