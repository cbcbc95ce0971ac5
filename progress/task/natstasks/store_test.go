package natstasks_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// SPEC 11.8, 13.3: the store is one as any other, and tasks of one replica can be asked for through another.
func TestStore(t *testing.T) {
	tasktest.TestStore(t, func(t *testing.T) (a, b task.Store) {
		w := newWorld(t, server.Options{JetStream: true})
		return w.open(), w.open()
	})
}
