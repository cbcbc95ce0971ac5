package natstasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

const lease = 1500 * time.Millisecond

var client = adapter.Caller{Version: "2026-07-28", Declared: true, Principal: "ann"}

type tool func(ctx context.Context) (string, error)

// begin calls a tool as a task that gets its handle at once. It calls ended when the call has ended, also
// where the tool was never called since the task was cancelled first.
func begin(ctx context.Context, tasks *task.Tasks, f tool, ended ...func()) (*task.Record, error) {
	call := adapter.Call{Tool: "build", Caller: client, Soft: -1}
	_, record, err := adapter.Do(ctx, tasks, call, func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		for _, f := range ended {
			defer f()
		}
		return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build", Observer: run.Observer()}, f)
	}, func(text string, err error) task.Answer {
		if err != nil {
			text = err.Error()
		}
		raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil})
		return task.Answer{Result: raw}
	})
	return record, err
}

func mustBegin(t *testing.T, tasks *task.Tasks, f tool) *task.Record {
	t.Helper()
	r, err := begin(t.Context(), tasks, f)
	if err != nil || r == nil {
		t.Fatalf("no task: %v, %v", r, err)
	}
	return r
}

func ask(ctx context.Context, tasks *task.Tasks, method, id string) (map[string]any, error) {
	return askAs(ctx, tasks, client, method, map[string]any{"taskId": id})
}

// askAs returns the result as JSON values.
func askAs(ctx context.Context, tasks *task.Tasks, c adapter.Caller, method string, params map[string]any) (got map[string]any, err error) {
	raw, _ := json.Marshal(params)
	fields, err := adapter.Serve(ctx, tasks, adapter.Request{Method: method, Params: raw, Caller: c})
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(fields); err == nil {
		err = json.Unmarshal(raw, &got)
	}
	return got, err
}

func hangs(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// A worker is a process that runs one task, says which, and then what has ended its tool.
func worker() error {
	js, err := dial(os.Getenv("WORKER_URL"))
	if err != nil {
		return err
	}
	defer js.Conn().Close()
	store, err := natstasks.Open(context.Background(), js)
	if err != nil {
		return err
	}
	tasks := task.New(task.WithStore(store), task.WithPoll(20*time.Millisecond))
	stopped := make(chan error, 1)
	record, err := begin(context.Background(), tasks, func(ctx context.Context) (string, error) {
		heartbeat.BeatWith(ctx, "begun")
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return "too late", nil
	})
	if err != nil {
		return err
	}
	fmt.Println(record.ID)
	err = <-stopped
	fmt.Println("lost", errors.Is(err, task.ErrLost), "cancelled", errors.Is(err, task.ErrCancelled))
	io.Copy(io.Discard, os.Stdin)
	return errors.Join(tasks.Close(), store.Close())
}

func init() { children["worker"] = worker }

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Reader
}

func startProcess(t *testing.T, mode string, env ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(append(os.Environ(), modeEnv+"="+mode), env...)
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// status returns what the bucket itself has of the task, "" where it has nothing.
func status(t *testing.T, js jetstream.JetStream, id string) task.Status {
	t.Helper()
	st, err := js.Stream(t.Context(), "KV_"+natstasks.DefaultBucket)
	if err != nil {
		t.Fatal(err)
	}
	m, err := st.GetLastMsgForSubject(t.Context(), "$KV."+natstasks.DefaultBucket+".*."+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return ""
	}
	var r task.Record
	if err = errors.Join(err, json.Unmarshal(m.Data, &r)); err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// SPEC 13.3, guarantee 5: the task of a process that was killed is failed when its lease has ended,
// and not before, whether somebody asks for it or not.
func TestKilled(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // so a stall ends none
	url := startServer(t, -1, t.TempDir()).ClientURL()
	asks := task.New(task.WithStore(open(t, url, natstasks.WithLease(lease))))
	js := connect(t, url)
	asked, unasked := startProcess(t, "worker", "WORKER_URL="+url), startProcess(t, "worker", "WORKER_URL="+url)
	one, two := asked.line(t), unasked.line(t)
	time.Sleep(2 * lease) // renewals keep them
	for _, id := range []string{one, two} {
		if got := status(t, js, id); got != task.Working {
			t.Errorf("while it runs: %q", got)
		}
	}
	killed := time.Now()
	asked.kill()
	unasked.kill()
	var got map[string]any
	eventually(t, lease+slack, func() bool {
		var err error
		if got, err = ask(t.Context(), asks, "tasks/get", one); err != nil {
			t.Error(err)
		}
		return got["status"] == string(task.Failed)
	}, func() string { return fmt.Sprint("still ", got) })
	t.Logf("found %v after the kill, with a lease of %v", time.Since(killed).Round(time.Millisecond), lease)
	eventually(t, lease+slack, func() bool { return status(t, js, two) == task.Failed }, func() string { return "nobody has looked" })
	raw, _ := json.Marshal(got["error"])
	if e := (task.Error{}); json.Unmarshal(raw, &e) != nil || e.Code != adapter.CodeInternal || !strings.Contains(e.Message, "gone") {
		t.Errorf("%s", raw)
	}
}

// SPEC 13.3: where all replicas were killed, the next one finds what they have left.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	open(t, url, natstasks.WithLease(lease)).Close() // makes the buckets
	p := startProcess(t, "worker", "WORKER_URL="+url)
	id := p.line(t)
	p.kill()
	time.Sleep(lease)
	open(t, url)
	js := connect(t, url)
	eventually(t, 2*lease+slack, func() bool { return status(t, js, id) == task.Failed }, func() string { return "nobody has looked" })
}

// SPEC 13.3: a replica that closes leaves nothing unfinished, and what it has left anyway is failed
// without waiting for the lease.
func TestClosed(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	open(t, url, natstasks.WithLease(lease))
	a, js := open(t, url), connect(t, url)
	tasks := task.New(task.WithStore(a))
	r := mustBegin(t, tasks, hangs)
	time.Sleep(lease) // for the other to be settled
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	eventually(t, lease+slack, func() bool { return status(t, js, r.ID) == task.Failed }, func() string { return "nobody has looked" })
	if err := tasks.Close(); err != nil {
		t.Error(err)
	}
	if got := status(t, js, r.ID); got != task.Failed {
		t.Errorf("its own outcome came after that: %q", got)
	}
}

// SPEC 13.3, guarantee 6: tools run on through an outage that is longer than the lease, what ends
// meanwhile is stored after it, and nobody is taken for gone.
func TestOutage(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // within which both must be back, on a busy machine too
	dir := t.TempDir()
	s := startServer(t, -1, dir)
	url := s.ClientURL()
	runs := task.New(task.WithStore(open(t, url, natstasks.WithLease(lease))), task.WithPoll(20*time.Millisecond))
	asks := task.New(task.WithStore(open(t, url)))
	end := make(chan struct{})
	during := mustBegin(t, runs, func(ctx context.Context) (string, error) { <-end; return "during", ctx.Err() })
	goOn := make(chan struct{})
	after := mustBegin(t, runs, func(ctx context.Context) (string, error) { <-goOn; return "after", ctx.Err() })
	waiting := make(chan map[string]any, 1)
	go func() {
		legacy := adapter.Caller{Version: "2025-11-25", Principal: "ann"}
		got, err := askAs(context.Background(), asks, legacy, "tasks/result", map[string]any{"taskId": during.ID})
		if err != nil {
			t.Error(err)
		}
		waiting <- got
	}()
	time.Sleep(lease / 2)
	at := port(s)
	stopServer(s)
	close(end)
	time.Sleep(2 * lease)
	startServer(t, at, dir)
	time.Sleep(lease)
	close(goOn)
	for _, r := range []*task.Record{during, after} {
		var got map[string]any
		var err error
		eventually(t, 4*slack, func() bool {
			got, err = ask(t.Context(), asks, "tasks/get", r.ID)
			return err == nil && got["status"] != string(task.Working)
		}, func() string { return fmt.Sprint("still ", got, err) })
		if got["status"] != string(task.Completed) {
			t.Errorf("%v", got)
		}
	}
	select {
	case got := <-waiting:
		if !strings.Contains(fmt.Sprint(got), "content") {
			t.Errorf("tasks/result: %v", got)
		}
	case <-time.After(slack):
		t.Error("tasks/result has not come through the outage")
	}
}

// SPEC 13.3, guarantee 6: after an outage in which all leases have expired, a replica that is back
// soon does not take one for gone that is back later, but within the lease.
func TestOutageOfLeases(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	dir := t.TempDir()
	s := startServer(t, -1, dir)
	asks := task.New(task.WithStore(open(t, s.ClientURL(), natstasks.WithLease(lease))))
	slow, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(lease/4), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	js, err := jetstream.New(slow)
	if err != nil {
		t.Fatal(err)
	}
	store, err := natstasks.Open(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	runs := task.New(task.WithStore(store))
	r := mustBegin(t, runs, hangs)
	time.Sleep(lease + lease/2) // both may judge
	at := port(s)
	stopServer(s)
	time.Sleep(lease)
	url := startServer(t, at, dir).ClientURL()
	// The server keeps the files of leases for longer than it must.
	st, err := connect(t, url).Stream(t.Context(), "KV_"+natstasks.DefaultBucket+"-leases")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 2*lease; time.Sleep(20 * time.Millisecond) {
		if got, err := ask(t.Context(), asks, "tasks/get", r.ID); err == nil && got["status"] != string(task.Working) {
			t.Fatalf("%v after the outage: %v", time.Since(begun), got)
		}
	}
	if err := runs.Close(); err != nil {
		t.Error(err)
	}
}

// SPEC 11.7, 13.3, guarantee 7: nothing is left in the buckets when the tasks have expired, large
// results included.
func TestEmptyAfterRetention(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	tasks := task.New(task.WithStore(open(t, url, natstasks.WithLease(lease))), task.WithRetention(10*time.Second))
	large := strings.Repeat("x", 2<<20)
	var ids []string
	for _, text := range []string{"small", large} {
		ids = append(ids, mustBegin(t, tasks, func(ctx context.Context) (string, error) { return text, nil }).ID)
	}
	for _, id := range ids {
		var got map[string]any
		eventually(t, slack, func() bool {
			var err error
			got, err = ask(t.Context(), tasks, "tasks/get", id)
			return err != nil || got["status"] == string(task.Completed)
		}, func() string { return fmt.Sprintf("%.300v", got) })
	}
	js := connect(t, url)
	for _, name := range []string{"KV_" + natstasks.DefaultBucket, "OBJ_" + natstasks.DefaultBucket + "-results"} {
		var left uint64
		eventually(t, 2*slack, func() bool {
			st, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			left = st.CachedInfo().State.Msgs
			return left == 0
		}, func() string { return fmt.Sprintf("%s: %d messages left", name, left) })
	}
	for _, id := range ids {
		_, err := ask(t.Context(), tasks, "tasks/get", id)
		if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != adapter.CodeInvalidParams {
			t.Errorf("%v", err)
		}
	}
}
