package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// workerCommand is the first argument of this program when it starts itself as a worker.
const workerCommand = "worker"

// Settings that the queue and the workers share.
const (
	consumerName = "workers"
	ackWait      = 2 * time.Second // time without a renewal after which a message is redelivered
	idleLimit    = time.Second     // time without a block of data after which a file is stuck
	atATime      = 2
)

// A worker takes files from the queue until its standard input ends.
type worker struct {
	server, stream string
	from, to       string
	killAt, hangAt int64 // number of the file at which the worker waits to be killed, or hangs; 0 means never

	taken atomic.Int64

	mu     sync.Mutex
	events *json.Encoder
}

// say sends an event to the parent. It ignores errors, because the worker ends if the parent has ended.
func (w *worker) say(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.events.Encode(e)
}

// An event is a report of a worker to its parent, sent as one line of JSON.
type event struct {
	What     string
	File     string `json:",omitempty"`
	Delivery uint64 `json:",omitempty"`
	Why      string `json:",omitempty"`
}

const (
	ready   = "ready"
	begins  = "begins"
	waits   = "waits" // waits to be killed
	done    = "done"
	wasDone = "was done" // done by another worker
	stopped = "stopped"
)

func workerMain(args []string) int {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends the standard input
	w := &worker{events: json.NewEncoder(stdio.New(os.Stdout))}
	flags := flag.NewFlagSet(workerCommand, flag.ExitOnError)
	flags.StringVar(&w.server, "server", "", "")
	flags.StringVar(&w.stream, "stream", "", "")
	flags.StringVar(&w.from, "from", "", "")
	flags.StringVar(&w.to, "to", "", "")
	flags.Int64Var(&w.killAt, "kill-at", 0, "")
	flags.Int64Var(&w.hangAt, "hang-at", 0, "")
	flags.Parse(args)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		io.Copy(io.Discard, stdio.New(os.Stdin)) // ends even if the parent is killed
		stop()
	}()
	if err := w.run(ctx); err != nil {
		fmt.Fprintln(stdio.New(os.Stderr), "worker:", err)
		return exitFailed
	}
	return 0
}

func (w *worker) run(ctx context.Context) error {
	nc, err := nats.Connect(w.server)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	consumer, err := js.Consumer(ctx, w.stream, consumerName)
	if err != nil {
		return err
	}
	w.say(event{What: ready})
	return natsworker.Run(ctx, consumer, atATime, w.work,
		natsworker.Options{Limits: &timeout.Config{Idle: idleLimit}, Conn: nc})
}

// work handles one message: a file to compress.
func (w *worker) work(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	file := string(msg.Data())
	tell := func(what, why string) { w.say(event{what, file, meta.NumDelivered, why}) }
	tell(begins, "")

	f, err := os.Open(filepath.Join(w.from, filepath.FromSlash(file)))
	if errors.Is(err, fs.ErrNotExist) {
		return natsworker.Reject(err) // a redelivery would not help
	}
	if err != nil {
		return err
	}
	defer f.Close()
	src := io.Reader(f)
	switch n := w.taken.Add(1); n {
	case w.killAt:
		src = &endless{src, func() { tell(waits, "") }}
	case w.hangAt:
		src = hanging(ctx)
	}

	// Each delivery writes its own file, because the function of an earlier delivery may still run.
	unfinished := filepath.Join(w.to, unfinishedDir, fmt.Sprintf("%d.%d", meta.Sequence.Stream, meta.NumDelivered))
	first, err := compress(ctx, src, unfinished, filepath.Join(w.to, filepath.FromSlash(file)+".gz"))
	switch {
	case err != nil:
		tell(stopped, err.Error())
	case first:
		tell(done, "")
	default:
		tell(wasDone, "")
	}
	return err
}

// endless is a reader that never ends: after the data of Reader it returns a byte every 50 ms, so that its file is
// neither complete nor stuck. It calls atEnd once, at the end of the data.
type endless struct {
	io.Reader
	atEnd func()
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err == io.EOF {
		if e.atEnd != nil {
			e.atEnd()
			e.atEnd = nil
		}
		time.Sleep(50 * time.Millisecond)
		return copy(p, "\n"), nil
	}
	return n, err
}

// hanging returns a reader whose Read blocks until ctx ends, and then returns the cause of ctx.
func hanging(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	return r
}
