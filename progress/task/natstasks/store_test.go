package natstasks_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// SPEC 11.8, 13.3: the store is one as any other.
func TestStore(t *testing.T) {
	tasktest.TestStore(t, func(t *testing.T) task.Store {
		return open(t, startServer(t, -1, t.TempDir()).ClientURL())
	})
}

// SPEC 11.8, 13.3: tasks of one replica through another.
func TestReplicas(t *testing.T) {
	tasktest.TestReplicas(t, func(t *testing.T) (runs, asks task.Store) {
		url := startServer(t, -1, t.TempDir()).ClientURL()
		return open(t, url), open(t, url)
	})
}
