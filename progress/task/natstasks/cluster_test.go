package natstasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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
		t.Cleanup(func() { stopServer(s) })
		c[i] = s
	}
	eventually(t, 3*slack, func() bool {
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
	}, func() string { return "the servers do not find each other" })
	return &c
}

// stopLeader stops the server that leads the stream of the tasks.
func (c *cluster) stopLeader(t *testing.T, bucket string) int {
	t.Helper()
	for i, s := range c {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "KV_"+bucket) {
			stopServer(s)
			return i
		}
	}
	t.Fatal("nobody leads")
	return 0
}

// SPEC 13.3: the store on three servers is one as any other, also where its replicas are connected
// to different ones. It is run by hand, TASKJETSTREAM_CLUSTER=1, since three servers elect their leaders
// by time, and lose them again on a machine that is busy with other tests.
func TestCluster(t *testing.T) {
	if os.Getenv("TASKJETSTREAM_CLUSTER") == "" {
		t.Skip("set TASKJETSTREAM_CLUSTER=1")
	}
	c := startCluster(t)
	var mu sync.Mutex
	n := 0
	opts := func() []natstasks.Option {
		mu.Lock()
		defer mu.Unlock()
		n++
		return []natstasks.Option{natstasks.WithBucket(fmt.Sprint("tasks", n)), natstasks.WithReplicas(3)}
	}
	t.Run("store", func(t *testing.T) {
		tasktest.TestStore(t, func(t *testing.T) task.Store { return open(t, c[0].ClientURL(), opts()...) })
	})
	t.Run("replicas", func(t *testing.T) {
		tasktest.TestReplicas(t, func(t *testing.T) (runs, asks task.Store) {
			o := opts()
			return open(t, c[1].ClientURL(), o...), open(t, c[2].ClientURL(), o...)
		})
	})
	t.Run("a bucket that is full", func(t *testing.T) { testFull(t, c[0].ClientURL(), natstasks.WithReplicas(3)) })
	t.Run("a leader that is gone", func(t *testing.T) { testLeaderGone(t, c) })
}

// SPEC 13.3: a server of three may go while tasks run.
func testLeaderGone(t *testing.T, c *cluster) {
	all := c[0].ClientURL() + "," + c[1].ClientURL() + "," + c[2].ClientURL()
	runs := task.New(task.WithStore(open(t, all, natstasks.WithReplicas(3), natstasks.WithLease(5*time.Second))), task.WithPoll(20*time.Millisecond))
	asks := task.New(task.WithStore(open(t, all)))
	goOn := make(chan struct{})
	r := mustBegin(t, runs, hangs)
	done := mustBegin(t, runs, func(ctx context.Context) (string, error) { <-goOn; return "done", ctx.Err() })
	c.stopLeader(t, natstasks.DefaultBucket)
	close(goOn)
	begun := time.Now()
	var err error
	eventually(t, 3*slack, func() bool { _, err = ask(t.Context(), asks, "tasks/cancel", r.ID); return err == nil }, func() string { return fmt.Sprint(err) })
	t.Logf("a cancel %v after the leader was gone", time.Since(begun).Round(time.Millisecond))
	for id, want := range map[string]task.Status{r.ID: task.Cancelled, done.ID: task.Completed} {
		var got map[string]any
		eventually(t, 3*slack, func() bool {
			got, err = ask(t.Context(), asks, "tasks/get", id)
			return err == nil && got["status"] == string(want)
		}, func() string { return fmt.Sprint(got, err) })
	}
	if err := runs.Close(); err != nil {
		t.Error(err)
	}
}
