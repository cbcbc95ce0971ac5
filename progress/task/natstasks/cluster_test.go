package natstasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
	"github.com/tooldeadline/tooldeadline/progress/task/tasktest"
)

// A cluster is three servers that keep everything three times.
type cluster [3]*server.Server

func startCluster(t testing.TB) *cluster {
	t.Helper()
	var c cluster
	var routes []*url.URL
	var at [3]int
	for i := range at {
		// The ports have to be known before, and must not be among those that the system gives to
		// somebody else meanwhile.
		for at[i] == 0 {
			p := 20000 + rand.IntN(10000)
			if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p)); err == nil {
				l.Close()
				at[i] = p
			}
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", at[i])})
	}
	for i := range c {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("server", i), Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "tasks", Host: "127.0.0.1", Port: at[i]}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		c[i] = s
	}
	harness.Eventually(t, "the servers to find each other", func() bool {
		for _, s := range c {
			if !s.ReadyForConnections(time.Second) || !s.JetStreamIsCurrent() {
				return false
			}
		}
		for _, s := range c {
			if s.JetStreamIsLeader() { // it alone knows
				return len(s.JetStreamClusterPeers()) == 3
			}
		}
		return false
	})
	return &c
}

// stopLeader stops the server that leads the stream of the tasks.
func (c *cluster) stopLeader(t *testing.T, bucket string) int {
	t.Helper()
	for i, s := range c {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "KV_"+bucket) {
			s.Shutdown()
			s.WaitForShutdown()
			return i
		}
	}
	t.Fatal("nobody leads")
	return 0
}

// SPEC 13.3: the store on three servers is one as any other, also where its replicas are connected to different ones. It
// is run by hand, with -simulate.for, since three servers elect their leaders by time, and lose them again on a machine
// that is busy with other tests.
func TestCluster(t *testing.T) {
	if harness.Length() == 0 {
		t.Skip("want -simulate.for")
	}
	c := startCluster(t)
	var mu sync.Mutex
	n := 0
	opts := func() natstasks.Options {
		mu.Lock()
		defer mu.Unlock()
		n++
		return natstasks.Options{Bucket: fmt.Sprint("tasks", n), Replicas: 3}
	}
	at := func(t *testing.T, url string) *world { return &world{TB: t, url: url} }
	open := func(t *testing.T) (runs, asks task.Store) {
		o := opts()
		return at(t, c[1].ClientURL()).openWith(o), at(t, c[2].ClientURL()).openWith(o)
	}
	t.Run("store", func(t *testing.T) { tasktest.TestStore(t, open) })
	t.Run("replicas", func(t *testing.T) { testReplicas(t, open) })
	t.Run("a bucket that is full", func(t *testing.T) { testFull(t, at(t, c[0].ClientURL()), 3) })
	t.Run("a leader that is gone", func(t *testing.T) {
		testLeaderGone(t, c, at(t, c[0].ClientURL()+","+c[1].ClientURL()+","+c[2].ClientURL()))
	})
}

// SPEC 13.3: a server of three may go while tasks run.
func testLeaderGone(t *testing.T, c *cluster, w *world) {
	runs := &task.Tasks{Store: w.openWith(natstasks.Options{Replicas: 3, Lease: 5 * time.Second}), Poll: 20 * time.Millisecond}
	asks := &task.Tasks{Store: w.open()}
	goOn := make(chan struct{})
	r := w.mustBegin(runs, hangs)
	done := w.mustBegin(runs, func(ctx context.Context) (string, error) { <-goOn; return "done", ctx.Err() })
	c.stopLeader(t, "mcp-tasks")
	close(goOn)
	harness.Eventually(t, "a cancel", func() bool { _, err := ask(asks, client, "tasks/cancel", r.ID); return err == nil })
	for id, want := range map[string]task.Status{r.ID: task.Cancelled, done.ID: task.Completed} {
		harness.Eventually(t, string(want), func() bool {
			got, err := ask(asks, client, "tasks/get", id)
			return err == nil && got["status"] == string(want)
		})
	}
	if err := runs.Close(); err != nil {
		t.Error(err)
	}
}
