package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A demo is one run of the program.
type demo struct {
	nats     string // "" means an embedded server
	out, err io.Writer
	begun    time.Time
	replicas map[string]*replica
}

type replica struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   *url.URL
}

func (d *demo) printf(ctx context.Context, format string, args ...any) {
	heartbeat.Beat(ctx)
	fmt.Fprintf(d.out, "%5.1f s  %s\n", time.Since(d.begun).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) run(ctx context.Context) (err error) {
	d.begun, d.replicas = time.Now(), make(map[string]*replica)
	natsURL, bucket := d.nats, fmt.Sprintf("cluster-%d-%d", os.Getpid(), time.Now().UnixNano())
	if natsURL == "" {
		s, stop, err := startNATS()
		if err != nil {
			return err
		}
		defer stop()
		natsURL = s
	} else {
		defer func() { err = errors.Join(err, deleteBuckets(natsURL, bucket)) }()
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	var backends []*url.URL
	for _, name := range []string{"one", "two"} {
		r, err := d.start(name, natsURL, bucket)
		if err != nil {
			return err
		}
		backends = append(backends, r.url)
		d.printf(ctx, "replica %s is process %d at %s", name, r.cmd.Process.Pid, r.url.Host)
	}
	front := httptest.NewServer(balance(backends))
	defer front.Close()
	ann := client{front.URL, "ann"}

	var runs [3]string // replica of each task
	var ids [3]string
	for i, n := range []int{20, 600, 600} {
		var handle struct{ Task status }
		by, err := ann.call(ctx, "tools/call", map[string]any{"name": "render", "arguments": frames{n}, "task": map[string]any{}}, &handle)
		if err != nil {
			return err
		}
		runs[i], ids[i] = by, handle.Task.TaskID
		if ids[i] == "" {
			return fmt.Errorf("replica %s did not make the call a task", by)
		}
		d.printf(ctx, "task %d, of %d frames, runs on replica %s", i+1, n, by)
	}
	// other repeats a request about task i until a replica answers that does not run the task.
	other := func(i int, method string, result any) (by string, err error) {
		for range 4 {
			by, err = ann.call(ctx, method, map[string]any{"taskId": ids[i]}, result)
			if err != nil || by != runs[i] {
				return by, err
			}
		}
		return by, fmt.Errorf("%s: replica %s answered every request", method, by)
	}

	var one status
	for one.StatusMessage == "" {
		by, err := other(0, "tasks/get", &one)
		if err != nil {
			return err
		}
		if one.StatusMessage != "" {
			d.printf(ctx, "replica %s says of task 1: %s, %s", by, one.Status, one.StatusMessage)
		}
	}
	var list struct{ Tasks []status }
	by, err := ann.call(ctx, "tasks/list", nil, &list)
	if err != nil {
		return err
	}
	d.printf(ctx, "replica %s lists %d tasks", by, len(list.Tasks))
	if len(list.Tasks) != len(ids) {
		return fmt.Errorf("want %d tasks", len(ids))
	}
	bob := client{front.URL, "bob"}
	if _, err := bob.call(ctx, "tasks/get", map[string]any{"taskId": ids[0]}, &one); err == nil {
		return errors.New("another user may read the task")
	} else {
		d.printf(ctx, "another user gets %v", err)
	}

	// The cancellation has to reach the other replica at the first attempt.
	var cancelled status
	for {
		if by, err = ann.call(ctx, "tasks/list", nil, &list); err != nil {
			return err
		}
		if by == runs[1] { // the other replica has the next turn
			break
		}
	}
	if by, err = ann.call(ctx, "tasks/cancel", map[string]any{"taskId": ids[1]}, &cancelled); err != nil {
		return err
	}
	d.printf(ctx, "replica %s has cancelled task 2: %s", by, cancelled.Status)
	if cancelled.Status != "cancelled" || by == runs[1] {
		return errors.New("want the task cancelled by the other replica")
	}

	var result struct{ Content []struct{ Text string } }
	by, err = other(0, "tasks/result", &result)
	if err != nil {
		return err
	}
	if len(result.Content) != 1 || result.Content[0].Text != "20 frames" {
		return fmt.Errorf("the result of task 1 is %v", result)
	}
	d.printf(ctx, "replica %s has the result of task 1: %s", by, result.Content[0].Text)

	killed := time.Now()
	if err := d.replicas[runs[2]].cmd.Process.Kill(); err != nil {
		return err
	}
	_ = d.replicas[runs[2]].cmd.Wait() // until it has ended, it may still accept a connection
	d.printf(ctx, "replica %s is killed (SIGKILL), and with it task 3", runs[2])
	var three status
	for three.Status != "failed" {
		if time.Since(killed) > time.Minute {
			return fmt.Errorf("task 3 is still %s", three.Status)
		}
		if by, err = ann.call(ctx, "tasks/get", map[string]any{"taskId": ids[2]}, &three); err != nil {
			return err
		}
		heartbeat.Beat(ctx)
		time.Sleep(50 * time.Millisecond)
	}
	d.printf(ctx, "replica %s says of task 3: %s, %s", by, three.Status, three.StatusMessage)
	return nil
}

// start starts a replica, and waits until it accepts connections.
func (d *demo) start(name, natsURL, bucket string) (*replica, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &replica{cmd: exec.Command(exe, replicaCommand, name, natsURL, bucket)}
	r.cmd.Stderr = d.err
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	d.replicas[name] = r
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	r.url = &url.URL{Scheme: "http", Host: strings.TrimSpace(line)}
	return r, nil
}

// stop ends the replicas, except the one that was killed.
func (d *demo) stop() error {
	for _, r := range d.replicas {
		r.stdin.Close()
	}
	var errs []error
	for name, r := range d.replicas {
		var exit *exec.ExitError
		if err := r.cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() > 0 {
			errs = append(errs, fmt.Errorf("replica %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func startNATS() (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return "", nil, err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	s.Start()
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(dir)
	}
	if !s.ReadyForConnections(time.Minute) {
		stop()
		return "", nil, errors.New("the embedded NATS server does not start")
	}
	return s.ClientURL(), stop, nil
}

func deleteBuckets(url, bucket string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(js.DeleteKeyValue(ctx, bucket), js.DeleteKeyValue(ctx, bucket+"-leases"))
}
