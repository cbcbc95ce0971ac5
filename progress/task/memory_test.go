package task_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

func TestMemory(t *testing.T) {
	tasktest.TestStore(t, func(*testing.T) task.Store { return new(task.Memory) })
}

func TestMemoryReplicas(t *testing.T) {
	tasktest.TestReplicas(t, func(*testing.T) (runs, asks task.Store) {
		m := new(task.Memory)
		return m, m
	})
}
