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

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// workerCommand is how this program starts itself as a worker.
const workerCommand = "worker"

// What the queue and the workers agree on.
const (
	consumerName = "workers"
	ackWait      = 2 * time.Second // a worker that sends nothing for as long is dead
	idleLimit    = time.Second     // a file from which nothing comes for as long is stuck
	atATime      = 2
)

// A worker takes files from the queue until its standard input ends.
type worker struct {
	server, stream string
	from, to       string
	killAt, hangAt int64 // in the how-many-th file; 0 is never

	taken atomic.Int64

	mu     sync.Mutex
	events *json.Encoder
}

// say sends an event to the parent. If that is gone, so will be this process.
func (w *worker) say(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.events.Encode(e)
}

// An event is what a worker reports to its parent, one line of JSON each.
type event struct {
	What     string
	File     string `json:",omitempty"`
	Delivery uint64 `json:",omitempty"`
	Why      string `json:",omitempty"`
}

const (
	ready   = "ready"
	begins  = "begins"
	waits   = "waits" // to be killed
	done    = "done"
	wasDone = "was done" // by another
	stopped = "stopped"
)

func workerMain(args []string) int {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends the standard input
	w := &worker{events: json.NewEncoder(os.Stdout)}
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
		io.Copy(io.Discard, os.Stdin) // also where the parent has been killed
		stop()
	}()
	if err := w.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
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
		natsworker.WithOptions(timeout.Config{Idle: idleLimit}), natsworker.WithConn(nc))
}

// work is one message: a file to compress.
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
		return natsworker.Reject(err) // nor will it be there next time
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

	// A name of its own for each delivery: the one before may still be at work.
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

// endless is a reader that, after what there is, has a little more from time to time, so that
// its file is never done and never stuck.
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

// hanging returns a reader from which nothing comes. Its Read takes no context, as those of
// files and connections do not; what ends it is that the other end is closed.
func hanging(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	return r
}
