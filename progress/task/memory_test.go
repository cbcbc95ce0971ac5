package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// SPEC 11.8.
func TestMemory(t *testing.T) {
	tasktest.TestStore(t, func(*testing.T) task.Store { return new(task.Memory) })
}

// SPEC 11.8: any process that has the store can answer.
func TestMemoryReplicas(t *testing.T) {
	tasktest.TestReplicas(t, func(*testing.T) (runs, asks task.Store) {
		m := new(task.Memory)
		return m, m
	})
}

// SPEC 11.8: a finished task may be updated too. It then takes the room that it has by then, and it
// is others that go for it.
func TestMemoryUpdatesAFinishedTask(t *testing.T) {
	m := &task.Memory{MaxBytes: 8 << 10}
	ctx := t.Context()
	create := func(id string, status task.Status) (task.Record, error) {
		return m.Create(ctx, task.Record{ID: id, Status: status, Expires: time.Now().Add(time.Hour)})
	}
	sized := func(r task.Record, n int) task.Record {
		r.Answer = &task.Answer{Result: json.RawMessage(strings.Repeat(" ", n))}
		return r
	}
	// It is the first to expire, so the first to go for any other.
	first, err := create("first", task.Completed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := create(fmt.Sprint("other ", i), task.Completed); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{4 << 10, 1 << 10, 4 << 10, 0, 6 << 10} {
		if first, err = m.Update(ctx, sized(first, n)); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got, err := m.Get(ctx, "", "first"); err != nil || len(got.Answer.Result) != n {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := m.Update(ctx, sized(first, 8<<10)); !errors.Is(err, task.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	// Its room is there for others, and no more than that.
	for i := range 9 {
		_, err := create(fmt.Sprint("running ", i), task.Working)
		if want := i >= 7; errors.Is(err, task.ErrFull) != want || err != nil && !want {
			t.Errorf("running %d: %v", i, err)
		}
	}
	if _, err := m.Get(ctx, "", "first"); !errors.Is(err, task.ErrUnknown) {
		t.Errorf("it is there: %v", err)
	}
}
