package natsworker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

func init() { children["server"] = serverChild }

// serverChild is a server with its files in SERVER_DIR, until its standard input ends.
func serverChild() error {
	port, err := strconv.Atoi(os.Getenv("SERVER_PORT"))
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: os.Getenv("SERVER_DIR"), NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(slack) {
		return errors.New("the server is not ready")
	}
	fmt.Println(s.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// A killable is a bench whose server is a process of its own.
type killable struct {
	*bench
	port int // -1 until it has one
	cmd  *exec.Cmd
}

func newKillable(t testing.TB, ackWait time.Duration) *killable {
	t.Helper()
	k := &killable{bench: &bench{TB: t, dir: t.TempDir()}, port: -1}
	k.start()
	t.Cleanup(func() { k.kill() })
	k.nc = k.connect(k.url())
	js, err := jetstream.New(k.nc)
	if err != nil {
		t.Fatal(err)
	}
	k.js = js
	k.queue(func(c *jetstream.ConsumerConfig) { c.AckWait = ackWait })
	return k
}

func (k *killable) start() {
	k.Helper()
	exe, err := os.Executable()
	if err != nil {
		k.Fatal(err)
	}
	k.cmd = exec.Command(exe)
	k.cmd.Env = append(os.Environ(), modeEnv+"=server", "SERVER_DIR="+k.dir, fmt.Sprint("SERVER_PORT=", k.port))
	k.cmd.Stderr = os.Stderr
	if _, err = k.cmd.StdinPipe(); err != nil {
		k.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		k.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		k.kill()
		k.Fatal("the server does not start: ", err)
	}
	if k.port, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		k.Fatal(err)
	}
}

func (k *killable) kill() {
	k.cmd.Process.Kill()
	k.cmd.Wait()
}

func (k *killable) url() string { return fmt.Sprint("nats://127.0.0.1:", k.port) }

// A completion is that of an execution.
type completion struct {
	sequence, delivery uint64
	by                 string
}

// twice reports whether two executions have completed the same delivery.
func twice(all []completion) bool {
	for i, c := range all {
		for _, d := range all[:i] {
			if c.sequence == d.sequence && c.delivery == d.delivery {
				return true
			}
		}
	}
	return false
}

// The recommendations of the package documentation under Effects hold while the server is killed with
// SIGKILL again and again: of the executions of a message exactly one is the first to complete it, and all
// others learn of it. KILLS=300 makes it the long run, KILL_SEED repeats the pauses between them.
//
// The fence by stream sequence and NumDelivered does not hold here, since a server writes the
// state of a consumer after it has delivered, up to ten times a second: one that was killed
// delivers messages again that are being worked on, for the first time. The test counts these.
func TestCompletionThroughKills(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	kills, seed := 6, uint64(time.Now().UnixNano())
	if s := os.Getenv("KILLS"); s != "" {
		kills, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("KILL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("KILL_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	k := newKillable(t, 6*time.Second)
	if _, err := k.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "done", History: 64}); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	begun := map[uint64]uint64{}           // the highest delivery by sequence
	fenced := map[string][]completion{}    // what the fence by sequence and delivery lets through, by message
	completed := map[string][]completion{} // what was told that it is the first, by message
	executions, second := 0, 0
	for w := range 3 {
		nc := k.connect(k.url())
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		done, err := js.KeyValue(t.Context(), "done")
		if err != nil {
			t.Fatal(err)
		}
		work := func(ctx context.Context, m jetstream.Msg) error {
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			id := m.Headers().Get(jetstream.MsgIDHeader)
			mu.Lock()
			executions++
			c := completion{meta.Sequence.Stream, meta.NumDelivered, fmt.Sprint("execution ", executions, " in worker ", w)}
			begun[c.sequence] = max(begun[c.sequence], c.delivery)
			mu.Unlock()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(rand.N(time.Second)):
			}
			mu.Lock()
			if c.delivery >= begun[c.sequence] {
				fenced[id] = append(fenced[id], c)
			}
			mu.Unlock()
			// The answer may be lost with the server.
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err = done.Create(ctx, id, []byte(c.by))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, jetstream.ErrKeyExists):
				second++
				return nil
			case err != nil:
				return err
			}
			completed[id] = append(completed[id], c)
			return nil
		}
		k.run(k.url(), 6, work, natsworker.WithConn, noLimits, natsworker.WithBackoff(100*time.Millisecond, time.Second))
	}

	killed := make(chan struct{})
	published := make(chan int)
	go func() {
		n := 0
		defer func() { published <- n }()
		for {
			select {
			case <-killed:
				return
			case <-time.After(30 * time.Millisecond):
			}
			id := fmt.Sprint("job-", n)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := k.js.Publish(ctx, "jobs.x", nil, jetstream.WithMsgID(id))
			cancel()
			if err == nil {
				n++ // else the same again, of which the stream takes one
			}
		}
	}()
	for range kills {
		time.Sleep(time.Duration(500+random.IntN(1000)) * time.Millisecond)
		k.kill()
		k.start()
	}
	close(killed)
	messages := <-published
	eventually(t, slack, k.nc.IsConnected, func() string { return "not connected again" })
	k.empty()

	mu.Lock()
	defer mu.Unlock()
	done, err := k.js.KeyValue(t.Context(), "done")
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for i := range messages {
		id := fmt.Sprint("job-", i)
		if twice(fenced[id]) {
			broken++
		}
		history, err := done.History(t.Context(), id)
		if err != nil || len(history) != 1 {
			t.Errorf("%s: %d completions are stored, %v", id, len(history), err)
			continue
		}
		for _, c := range completed[id] { // none if the answer was lost
			if c.by != string(history[0].Value()) {
				t.Errorf("%s: %v was told that it was the first, which was %s", id, c, history[0].Value())
			}
		}
		if n := len(completed[id]); n > 1 {
			t.Errorf("%s: %d were told that they were the first: %v", id, n, completed[id])
		}
	}
	t.Logf("%d kills, %d messages, %d executions; %d were told that another had completed theirs; a fence by sequence and delivery would have let two complete %d messages in the same delivery",
		kills, messages, executions, second, broken)
}
