package task_test

import (
	"testing"

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
