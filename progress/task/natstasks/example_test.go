package natstasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
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
		store, err := natstasks.Open(ctx, js)
		check(err)
		defer store.Close()
		replicas[i] = &task.Tasks{Store: store}
		defer replicas[i].Close()
	}

	record, err := begin(ctx, replicas[0], func(context.Context) (string, error) { return "built", nil })
	check(err)
	params, _ := json.Marshal(map[string]any{"taskId": record.ID})
	result, err := adapter.Serve(ctx, replicas[1], adapter.Caller{Version: "2025-11-25", Principal: "ann"}, "tasks/result", params)
	check(err)
	fmt.Printf("%s\n", result["content"])
	// Output: [{"text":"built","type":"text"}]
}

// Close gives up what other replicas would otherwise wait for, a lease.
func ExampleStore_Close() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js)
	check(err)
	tasks := &task.Tasks{Store: store}
	// ... serve, and when the process is asked to end:
	fmt.Println(tasks.Close(), store.Close())
	// Output: <nil> <nil>
}

// Two products that share a NATS account.
func ExampleWithBucket() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithBucket("builder"))
	check(err)
	defer store.Close()
	for info := range js.ListStreams(context.Background()).Info() {
		if strings.HasSuffix(info.Config.Name, "leases") {
			fmt.Println(info.Config.Name)
		}
	}
	// Output: KV_builder-leases
}

// A lease is long enough for a connection to come back.
func ExampleWithLease() {
	js, done := natsServer()
	defer done()
	_, err := natstasks.Open(context.Background(), js, natstasks.WithLease(100*time.Millisecond))
	fmt.Println(err)
	// Output: natstasks: a lease of 100ms: want 1s or more
}

// A single server keeps one copy.
func ExampleWithReplicas() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithReplicas(1))
	check(err)
	defer store.Close()
	s, err := js.Stream(context.Background(), "KV_"+natstasks.DefaultBucket)
	check(err)
	fmt.Println(s.CachedInfo().Config.Replicas)
	// Output: 1
}

// create is what package task does for a call that becomes a task.
func create(s *natstasks.Store, id string) (task.Record, error) {
	return s.Create(context.Background(), task.Record{ID: id, Status: task.Working, Retention: time.Minute})
}

func ExampleWithMaxTasks() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithMaxTasks(1))
	check(err)
	defer store.Close()
	_, err = create(store, "one")
	fmt.Println(err)
	_, err = create(store, "two")
	fmt.Println(errors.Is(err, task.ErrFull))
	// Output:
	// <nil>
	// true
}

func ExampleWithMaxBytes() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithMaxBytes(100))
	check(err)
	defer store.Close()
	_, err = create(store, "one")
	fmt.Println(errors.Is(err, task.ErrFull))
	// Output: true
}

func ExampleWithMaxResult() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithMaxResult(1<<20))
	check(err)
	defer store.Close()
	r, err := create(store, "one")
	check(err)
	r.Status, r.Expires = task.Completed, time.Now().Add(r.Retention)
	r.Answer = &task.Answer{Result: json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)}
	_, err = store.Update(context.Background(), r)
	fmt.Println(errors.Is(err, task.ErrTooLarge))
	// Output: true
}

func ExampleWithLogger() {
	js, done := natsServer()
	defer done()
	store, err := natstasks.Open(context.Background(), js, natstasks.WithLogger(slog.Default()))
	check(err)
	fmt.Println(store.Close()) // nothing to log
	// Output: <nil>
}
