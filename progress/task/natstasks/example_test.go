package natstasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

// natsServer returns a connection to a server of its own, which done ends.
func natsServer() (js jetstream.JetStream, done func()) {
	dir, err := os.MkdirTemp("", "jetstream")
	check(err)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	check(err)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		panic("the server is not ready")
	}
	nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1))
	check(err)
	js, err = jetstream.New(nc)
	check(err)
	return js, func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(dir)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A task of one replica is read through another.
func ExampleOpen() {
	js, done := natsServer()
	defer done()
	ctx := context.Background()
	var replicas [2]*task.Tasks
	for i := range replicas {
		store, err := natstasks.Open(ctx, js, natstasks.Options{})
		check(err)
		defer store.Close()
		replicas[i] = &task.Tasks{Store: store}
		defer replicas[i].Close()
	}

	record, err := begin(ctx, replicas[0], func(context.Context) (string, error) { return "built", nil })
	check(err)
	params, _ := json.Marshal(map[string]any{"taskId": record.ID})
	result, err := adapter.Serve(ctx, replicas[1], nil, adapter.Caller{Version: "2025-11-25", Principal: "ann"}, "tasks/result", params)
	check(err)
	fmt.Printf("%s\n", result["content"])
	// Output: [{"text":"built","type":"text"}]
}

// Close gives up what other replicas would otherwise wait for, a lease.
func ExampleStore_Close() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.Options{})
	check(err)
	tasks := &task.Tasks{Store: store}
	// ... serve, and when the process is asked to end:
	fmt.Println(tasks.Close(), store.Close())
	// Output: <nil> <nil>
}
