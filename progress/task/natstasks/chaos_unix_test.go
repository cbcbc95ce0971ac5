//go:build unix

package natstasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

const (
	chaosLease   = 3 * time.Second
	chaosRunning = 16 // tasks of a worker at a time
)

func init() { children["chaos"] = chaosWorker }

// chaosWorker is a process that begins tasks one after the other until its standard input ends,
// and says the id of each.
func chaosWorker() error {
	js, err := dial(os.Getenv("CHAOS_URL"))
	for ; err != nil; js, err = dial(os.Getenv("CHAOS_URL")) { // the server may be away just now
		time.Sleep(50 * time.Millisecond)
	}
	defer js.Conn().Close()
	var store *natstasks.Store
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		store, err = natstasks.Open(ctx, js)
		cancel()
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	retention, err := time.ParseDuration(os.Getenv("CHAOS_RETENTION"))
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(os.Getenv("CHAOS_PAUSE"))
	if err != nil {
		return err
	}
	tasks := task.New(task.WithStore(store), task.WithPoll(100*time.Millisecond), task.WithMaxRunning(2*chaosRunning), task.WithRetention(retention))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var out sync.Mutex
	var slots sync.WaitGroup
	for range chaosRunning {
		slots.Go(func() {
			for ctx.Err() == nil {
				ended := make(chan struct{})
				record, err := begin(ctx, tasks, func(ctx context.Context) (string, error) {
					for i := range rand.IntN(10) {
						heartbeat.BeatWith(ctx, fmt.Sprint("step ", i))
						select {
						case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
						case <-ctx.Done():
							return "", context.Cause(ctx)
						}
					}
					if rand.IntN(100) == 0 {
						return strings.Repeat("x", 300<<10), nil
					}
					return "done", nil
				}, func() { close(ended) })
				if err == nil && record != nil { // else it has stayed plain
					out.Lock()
					fmt.Println(record.ID)
					out.Unlock()
				}
				<-ended
				time.Sleep(time.Duration(rand.Int64N(int64(2 * pause))))
			}
		})
	}
	slots.Wait()
	end, cancel := context.WithTimeout(context.Background(), 3*slack)
	defer cancel()
	return errors.Join(tasks.Shutdown(end), store.Close())
}

// A ledger has what the bucket itself has had of each task.
type ledger struct {
	mu   sync.Mutex
	ends map[string]map[uint64]end // by id and revision
}

// An end is a record with a final status. That of a cancelled task comes once more, when its tool has returned (SPEC 11.5).
type end struct {
	status   task.Status
	returned bool
}

// watch begins anew after each outage. A watcher notices by itself that the server has forgotten it, but so late that
// with the outage the retention may be over.
func (l *ledger) watch(ctx context.Context, t *testing.T, js jetstream.JetStream) {
	back := js.Conn().StatusChanged(nats.CONNECTED)
	for ctx.Err() == nil {
		kv, err := js.KeyValue(ctx, natstasks.DefaultBucket)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		w, err := kv.WatchAll(ctx)
		if err != nil {
			continue
		}
		for on := true; on; {
			select {
			case e, open := <-w.Updates():
				on = open
				if e != nil && e.Operation() == jetstream.KeyValuePut {
					l.note(t, e)
				}
			case <-back:
				on = false
				_ = w.Stop()
			}
		}
	}
}

func (l *ledger) note(t *testing.T, e jetstream.KeyValueEntry) {
	var r task.Record
	if err := json.Unmarshal(e.Value(), &r); err != nil {
		t.Error(err)
	}
	if !r.Status.Final() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[r.ID] == nil {
		l.ends[r.ID] = map[uint64]end{}
	}
	l.ends[r.ID][e.Revision()] = end{r.Status, r.Status == task.Cancelled && r.Answer != nil}
}

// SPEC 13.3: two processes, random cancels, SIGKILL, SIGSTOP and outages of the server. No task is
// lost, none has two outcomes, none can be read by another, those of dead processes are found,
// and nothing is left when the retention is over. CHAOS_TASKS=10000 makes it the long run.
func TestChaos(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	want, retention, pause := 150, 20*time.Second, time.Second // between two tasks of a slot
	if s := os.Getenv("CHAOS_TASKS"); s != "" {
		want, _ = strconv.Atoi(s)
		retention, pause = time.Minute, 200*time.Millisecond
	}
	dir := t.TempDir()
	server := startServer(t, -1, dir)
	at, url := port(server), server.ClientURL()
	open(t, url, natstasks.WithLease(chaosLease)).Close() // makes the buckets
	asks := task.New(task.WithStore(open(t, url)))
	book := &ledger{ends: map[string]map[uint64]end{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	watching := connect(t, url)
	all.Go(func() { book.watch(ctx, t, watching) })
	defer all.Wait()
	defer cancel()

	var begun, cancels, lostSeen atomic.Int64
	var mu sync.Mutex
	seen := map[string]task.Status{} // what a client was told of the end
	var clients sync.WaitGroup
	limit := make(chan struct{}, 64)
	// client follows one task as a client does who may cancel it.
	follow := func(id string) {
		defer func() { <-limit }()
		if rand.IntN(5) == 0 {
			if _, err := ask(ctx, asks, "tasks/cancel", id); err == nil {
				cancels.Add(1)
			}
		}
		if _, err := askAs(ctx, asks, adapter.Caller{Version: "2026-07-28", Declared: true, Principal: "bob"}, "tasks/get", map[string]any{"taskId": id}); err == nil {
			t.Errorf("%s can be read by another", id)
		}
		for begun := time.Now(); ; time.Sleep(150 * time.Millisecond) {
			got, err := ask(ctx, asks, "tasks/get", id)
			status, _ := got["status"].(string)
			if e := (*task.Error)(nil); errors.As(err, &e) && e.Code == adapter.CodeInvalidParams {
				mu.Lock()
				seen[id] = "expired"
				mu.Unlock()
				return
			}
			if err == nil && task.Status(status).Final() {
				mu.Lock()
				seen[id] = task.Status(status)
				mu.Unlock()
				if message, _ := got["statusMessage"].(string); status == "failed" && strings.Contains(message, "gone") {
					lostSeen.Add(1)
				}
				return
			}
			if time.Since(begun) > 6*slack {
				t.Errorf("%s is still %v, %v", id, got, err)
				return
			}
		}
	}
	type chaosProcess struct {
		cmd   *exec.Cmd
		stdin io.Closer
		read  sync.WaitGroup
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *chaosProcess {
		p := &chaosProcess{cmd: exec.Command(exe)}
		p.cmd.Env = append(os.Environ(), modeEnv+"=chaos", "CHAOS_URL="+url, "CHAOS_RETENTION="+retention.String(), "CHAOS_PAUSE="+pause.String())
		p.cmd.Stderr = os.Stderr
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.read.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				begun.Add(1)
				id := lines.Text()
				limit <- struct{}{}
				clients.Go(func() { follow(id) })
			}
		})
		return p
	}
	workers := []*chaosProcess{start(), start()}
	defer func() {
		for _, p := range workers {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	}()
	deck := []string{"kill", "kill", "stop", "outage", "outage"}
	did := map[string]int{}
	for begunAt, next := time.Now(), 0; begun.Load() < int64(want) || next < len(deck); {
		if time.Since(begunAt) > 4*time.Minute+time.Duration(want)*50*time.Millisecond {
			t.Fatalf("only %d tasks begun", begun.Load())
		}
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond)
		if next%len(deck) == 0 {
			rand.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		what := deck[next%len(deck)]
		next++
		did[what]++
		i := rand.IntN(len(workers))
		p := workers[i]
		switch what {
		case "kill":
			p.cmd.Process.Kill()
			p.read.Wait()
			p.cmd.Wait()
			workers[i] = start()
		case "stop":
			p.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(rand.Int64N(int64(2 * chaosLease))))
			p.cmd.Process.Signal(syscall.SIGCONT)
		case "outage":
			stopServer(server)
			time.Sleep(time.Duration(rand.Int64N(int64(2 * chaosLease))))
			server = startServer(t, at, dir)
		}
	}
	for _, p := range workers {
		p.stdin.Close()
	}
	for _, p := range workers {
		p.read.Wait()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
	clients.Wait()

	count := map[task.Status]int{}
	mu.Lock()
	for id, status := range seen {
		count[status]++
		book.mu.Lock()
		ends := book.ends[id]
		book.mu.Unlock()
		if status == "expired" && len(ends) == 0 {
			t.Errorf("%s is lost: it is unknown, and has never ended", id)
		}
		once := map[bool]uint64{} // the revision, by returned
		for revision, is := range ends {
			if once[is.returned] != 0 {
				t.Errorf("%s has ended more than once: %v", id, ends)
			}
			once[is.returned] = revision
			if status != "expired" && is.status != status {
				t.Errorf("%s: a client was told %s, the bucket had %s", id, status, is.status)
			}
		}
		if once[true] != 0 && once[false] > once[true] {
			t.Errorf("%s has ended after its tool had returned: %v", id, ends)
		}
	}
	mu.Unlock()
	if len(seen) != int(begun.Load()) {
		t.Errorf("of %d tasks the end of %d was seen", begun.Load(), len(seen))
	}
	t.Logf("%d tasks, %d cancels, blows: %v; ends: %v, of which %d lost with their process", begun.Load(), cancels.Load(), did, count, lostSeen.Load())

	// Those whose handle never came out of a killed process have ended, too, or were removed because
	// nobody knows whether they were created: a task that has not ended does not expire.
	var left uint64
	js := connect(t, url)
	eventually(t, retention+6*slack, func() bool {
		st, err := js.Stream(t.Context(), "KV_"+natstasks.DefaultBucket)
		if err != nil {
			return false
		}
		left = st.CachedInfo().State.Msgs
		return left == 0
	}, func() string { return fmt.Sprintf("%d records left", left) })
}
