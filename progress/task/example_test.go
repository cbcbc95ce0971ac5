package task_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// With a small store and few that run. Package adapter has the examples of calls that become tasks.
func ExampleTasks() {
	tasks := &task.Tasks{Store: task.NewMemory(100, 8<<20), MaxRunning: 10, Retention: time.Minute, Poll: 2 * time.Second}
	fmt.Println(tasks.Close())
	// Output: <nil>
}

func ExampleTasks_Shutdown() {
	tasks := new(task.Tasks)
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	fmt.Println(tasks.Shutdown(ctx))
	// Output: <nil>
}

func ExampleRecord_Lost() {
	r := task.Record{ID: "x", Status: task.Working, Retention: time.Minute, Message: "file 37"}.Lost(time.Now())
	fmt.Println(r.Status, r.Status.Final(), r.Message)
	// Output: failed true the process that ran the task is gone; last: file 37
}

func ExampleNewMemory() {
	store := task.NewMemory(1, 0)
	_, first := store.Create(context.Background(), task.Record{Owner: "ann", ID: "a", Status: task.Working})
	_, second := store.Create(context.Background(), task.Record{Owner: "ann", ID: "b", Status: task.Working})
	fmt.Println(first, errors.Is(second, task.ErrFull))
	// Output: <nil> true
}
