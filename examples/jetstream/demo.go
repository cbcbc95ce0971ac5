package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A demo is one run of the program.
type demo struct {
	server   string // empty means an embedded server
	from, to string
	files    []string
	out, err io.Writer

	begun   time.Time
	workers []*process

	mu     sync.Mutex
	rounds map[string]int // executions of each file
	done   map[string]int // how often each file was completed
	killed int
	stuck  int
}

// killAt and hangAt are the numbers of the files of a worker at which it is killed or gets stuck. Each worker handles
// more files, unless the tree is very small.
const (
	killAt = 5
	hangAt = 7
)

func (d *demo) run(ctx context.Context) (err error) {
	d.begun, d.rounds, d.done = time.Now(), map[string]int{}, map[string]int{}
	url := d.server
	if url == "" {
		s, err := startServer()
		if err != nil {
			return err
		}
		defer s.stop()
		url = s.ClientURL()
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := makeQueue(ctx, js)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, js.DeleteStream(ctx, stream))
	}()
	d.printf("the queue is stream %s of %s", stream, url)

	defer func() { err = errors.Join(err, d.stopWorkers()) }()
	for i, args := range [][]string{nil, {"-kill-at", fmt.Sprint(killAt)}, {"-hang-at", fmt.Sprint(hangAt)}} {
		args = append([]string{workerCommand, "-server", url, "-stream", stream, "-from", d.from, "-to", d.to}, args...)
		if err := d.startWorker(ctx, i+1, args); err != nil {
			return err
		}
	}
	// All workers start before the first file is published, so that each gets some files.
	for _, p := range d.workers {
		select {
		case <-p.ready:
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("worker %d ended: %w", p.number, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, file := range d.files {
		if _, err := js.Publish(ctx, stream, []byte(file)); err != nil {
			return err
		}
		heartbeat.Beat(ctx)
	}
	d.printf("%d files of %s are in it", len(d.files), d.from)
	if err := untilEmpty(ctx, js, stream); err != nil {
		return err
	}
	if err := d.stopWorkers(); err != nil {
		return err
	}
	return d.verify(ctx)
}

// makeQueue creates a stream that deletes each message once it is acknowledged, and the consumer of the workers. It
// returns the name of the stream.
func makeQueue(ctx context.Context, js jetstream.JetStream) (name string, err error) {
	name = fmt.Sprintf("compress-%d-%d", os.Getpid(), time.Now().UnixNano())
	if _, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{name}, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		return "", err
	}
	_, err = js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
	})
	return name, err
}

// untilEmpty waits until every message has been acknowledged.
func untilEmpty(ctx context.Context, js jetstream.JetStream, stream string) error {
	for {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		if s.CachedInfo().State.Msgs == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A process is a worker process that its parent has started.
type process struct {
	number int
	cmd    *exec.Cmd
	stdin  io.Closer
	ready  chan struct{}
	ended  chan error
	killed bool
}

func (d *demo) startWorker(ctx context.Context, number int, args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{number: number, cmd: exec.Command(exe, args...), ready: make(chan struct{}), ended: make(chan error, 1)}
	p.cmd.Stderr = d.err
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	events, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	d.printf("worker %d is process %d", number, p.cmd.Process.Pid)
	d.workers = append(d.workers, p)
	go func() {
		for lines := bufio.NewScanner(events); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				heartbeat.Beat(ctx)
				d.note(p, e)
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	return nil
}

// note counts an event, kills a worker that waits for it, and prints kills, stops and redeliveries.
func (d *demo) note(p *process, e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e.What {
	case ready:
		close(p.ready)
	case begins:
		d.rounds[e.File]++
	case waits:
		p.killed = true
		p.cmd.Process.Kill()
		d.killed++
		d.say("worker %d is in the middle of %s, and killed (SIGKILL)", p.number, e.File)
	case stopped:
		d.stuck++
		d.say("worker %d is stopped in %s: %s", p.number, e.File, e.Why)
	case done, wasDone:
		if e.What == done {
			d.done[e.File]++
		}
		if e.Delivery > 1 {
			d.say("worker %d: %s, delivery %d: %s", p.number, e.File, e.Delivery, e.What)
		}
	}
}

// stopWorkers ends the running workers by closing their input, and waits for them. A second call does nothing.
func (d *demo) stopWorkers() (err error) {
	for _, p := range d.workers {
		p.stdin.Close()
	}
	for _, p := range d.workers {
		var e error
		select {
		case e = <-p.ended:
		case <-time.After(30 * time.Second):
			p.cmd.Process.Kill()
			<-p.ended
			e = errors.New("did not end")
		}
		if e != nil && !p.killed {
			err = errors.Join(err, fmt.Errorf("worker %d: %w", p.number, e))
		}
	}
	d.workers = nil
	return err
}

func (d *demo) printf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say(format, args...)
}

// say is printf for a caller that holds d.mu.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%5.1f s  %s\n", time.Since(d.begun).Seconds(), fmt.Sprintf(format, args...))
}

// An embedded is a NATS server in this process, with its data in dir.
type embedded struct {
	*server.Server
	dir string
}

func startServer() (*embedded, error) {
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: filepath.Join(dir, "jetstream"),
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	e := &embedded{s, dir}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		e.stop()
		return nil, errors.New("the embedded server does not start")
	}
	return e, nil
}

func (e *embedded) stop() {
	e.Shutdown()
	e.WaitForShutdown()
	os.RemoveAll(e.dir)
}
