package natsworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// queue returns a work queue with these messages on a server of its own, which done ends.
func queue(config jetstream.ConsumerConfig, messages ...string) (nc *nats.Conn, consumer jetstream.Consumer, done func()) {
	dir, err := os.MkdirTemp("", "jetstream")
	check(err)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	check(err)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		panic("the server is not ready")
	}
	nc, err = nats.Connect(s.ClientURL())
	check(err)
	js, err := jetstream.New(nc)
	check(err)
	ctx := context.Background()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}, Retention: jetstream.WorkQueuePolicy})
	check(err)
	config.Durable, config.AckPolicy = "workers", jetstream.AckExplicitPolicy
	consumer, err = js.CreateConsumer(ctx, "JOBS", config)
	check(err)
	for _, m := range messages {
		_, err = js.Publish(ctx, "jobs", []byte(m))
		check(err)
	}
	return nc, consumer, func() {
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

// A function that hangs is stopped at its idle limit, and its message delivered again.
func ExampleRun() {
	nc, consumer, done := queue(jetstream.ConsumerConfig{AckWait: 30 * time.Second}, "a.txt", "b.txt")
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	left := 2
	err := natsworker.Run(ctx, consumer, 1, func(ctx context.Context, msg jetstream.Msg) error {
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if string(msg.Data()) == "a.txt" && meta.NumDelivered == 1 {
			<-ctx.Done()
			fmt.Println(string(msg.Data()), context.Cause(ctx))
			return ctx.Err()
		}
		heartbeat.Beat(ctx) // after each block of a long file
		fmt.Println(string(msg.Data()), "done in delivery", meta.NumDelivered)
		if left--; left == 0 {
			stop()
		}
		return nil
	}, natsworker.Options{Limits: &timeout.Config{Idle: 500 * time.Millisecond}, Conn: nc, Drain: time.Minute})
	fmt.Println(err)
	// Unordered output:
	// a.txt No progress for 0.5s (idle timeout). Tool should call heartbeat() during long work.
	// a.txt done in delivery 2
	// b.txt done in delivery 1
	// <nil>
}

// A message that is delivered again is completed once, by its id.
func ExampleRun_once() {
	nc, consumer, done := queue(jetstream.ConsumerConfig{})
	defer done()
	js, err := jetstream.New(nc)
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	results, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "results"})
	check(err)
	_, err = js.Publish(ctx, "jobs", []byte("a.txt"), jetstream.WithMsgID("job-1"))
	check(err)
	err = natsworker.Run(ctx, consumer, 1, func(ctx context.Context, msg jetstream.Msg) error {
		result := fmt.Sprint(string(msg.Data()), " compressed") // the work
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := results.Create(ctx, msg.Headers().Get(jetstream.MsgIDHeader), []byte(result))
		if errors.Is(err, jetstream.ErrKeyExists) {
			fmt.Println("done before")
			stop()
			return nil
		}
		fmt.Println("stored:", result)
		return errors.New("killed before the ack")
	}, natsworker.Options{Conn: nc, Backoff: -1, Drain: time.Minute})
	fmt.Println(err)
	// Output:
	// stored: a.txt compressed
	// done before
	// <nil>
}

func ExampleHandler() {
	nc, consumer, done := queue(jetstream.ConsumerConfig{}, "a.txt")
	defer done()
	handler, err := natsworker.Handler(consumer, func(ctx context.Context, msg jetstream.Msg) error {
		fmt.Println(string(msg.Data()))
		return nil
	}, natsworker.Options{Limits: &timeout.Config{Idle: 2 * time.Minute}, Conn: nc})
	check(err)
	consuming, err := consumer.Consume(handler, jetstream.PullMaxMessages(1), jetstream.StopAfter(1))
	check(err)
	<-consuming.Closed()
	// Output: a.txt
}

// A message that makes no sense is not delivered again. The server tells everybody why.
func ExampleReject() {
	nc, consumer, done := queue(jetstream.ConsumerConfig{}, "nonsense")
	defer done()
	advisories, err := nc.SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.JOBS.workers")
	check(err)
	handler, err := natsworker.Handler(consumer, func(ctx context.Context, msg jetstream.Msg) error {
		return natsworker.Reject(fmt.Errorf("no job called %q", msg.Data()))
	}, natsworker.Options{Conn: nc})
	check(err)
	consuming, err := consumer.Consume(handler, jetstream.PullMaxMessages(1), jetstream.StopAfter(1))
	check(err)
	<-consuming.Closed()
	advisory, err := advisories.NextMsg(10 * time.Second)
	check(err)
	var reason struct{ Reason string }
	check(json.Unmarshal(advisory.Data, &reason))
	fmt.Println(reason.Reason)
	// Output: no job called "nonsense"
}

// A job that is not ready yet can be looked at later, however often that has happened before.
func ExampleAfter() {
	nc, consumer, done := queue(jetstream.ConsumerConfig{}, "a.txt")
	defer done()
	ready := false
	handler, err := natsworker.Handler(consumer, func(ctx context.Context, msg jetstream.Msg) error {
		if !ready {
			ready = true
			return natsworker.After(100*time.Millisecond, errors.New("still being uploaded"))
		}
		fmt.Println("done")
		return nil
	}, natsworker.Options{Conn: nc})
	check(err)
	consuming, err := consumer.Consume(handler, jetstream.PullMaxMessages(1), jetstream.StopAfter(2))
	check(err)
	<-consuming.Closed()
	// Output: done
}
