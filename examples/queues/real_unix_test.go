//go:build unix

package queues

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What River and asynq keep of work that beats ten details in a second and then stalls.

var silent = slog.New(slog.DiscardHandler)

// stalls beats ten details in a second, and waits until it is stopped.
func stalls(ctx context.Context) error {
	for i := range 10 {
		heartbeat.BeatWith(ctx, i)
		time.Sleep(100 * time.Millisecond)
	}
	<-ctx.Done()
	return ctx.Err()
}

type riverArgs struct{ N int }

func (riverArgs) Kind() string { return "index" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	work func(context.Context, *river.Job[riverArgs]) error
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	return w.work(ctx, job)
}

// newRiver returns a client that works on jobs once it is started.
func newRiver(ctx context.Context, url string, config *river.Config, work func(context.Context, *river.Job[riverArgs]) error) (*river.Client[pgx.Tx], *pgxpool.Pool, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	config.Workers, config.Logger = river.NewWorkers(), silent
	river.AddWorker(config.Workers, &riverWorker{work: work})
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 8}}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	return client, pool, err
}

func migrateRiver(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	return err
}

// SPEC 13.4, 4.5.
func TestRiverDetail(t *testing.T) {
	t.Parallel()
	url := dsn(startPostgres(t).addr())
	if err := migrateRiver(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	client, pool, err := newRiver(t.Context(), url, &river.Config{
		Middleware: []rivertype.Middleware{limitRiver(timeout.Config{Idle: 2 * time.Second})},
	}, func(ctx context.Context, job *river.Job[riverArgs]) error {
		if job.Attempt == 1 {
			return stalls(ctx)
		}
		heartbeat.Beat(ctx) // which leaves the detail of the attempt before alone
		found <- string(job.Output())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	job, err := client.Insert(t.Context(), riverArgs{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer client.Stop(context.Background())
	if got := <-found; got != "9" {
		t.Errorf("the second attempt found the detail %s, want 9", got)
	}
	harness.Eventually(t, "the job to be completed", func() bool {
		now, err := client.JobGet(t.Context(), job.Job.ID)
		if err != nil || now.State != rivertype.JobStateCompleted {
			return false
		}
		if string(now.Output()) != "9" {
			t.Errorf("a plain beat has left %s", now.Output())
		}
		return true
	})
}

// SPEC 13.4, 4.5.
func TestAsynqDetail(t *testing.T) {
	t.Parallel()
	at := asynq.RedisClientOpt{Addr: startRedis(t).addr()}
	db := redis.NewClient(&redis.Options{Addr: at.Addr})
	defer db.Close()
	details := func(id string) string { return db.Get(t.Context(), "progress:"+id).Val() }
	found := make(chan string, 1)
	server := newAsynq(at, limitAsynq(timeout.Config{Idle: 2 * time.Second}, db), func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		if retried, _ := asynq.GetRetryCount(ctx); task.Type() == "stalls" && retried == 0 {
			return stalls(ctx)
		}
		found <- details(id)
		if task.Type() == "result" {
			heartbeat.BeatWith(ctx, "nearly there")
			_, err := io.WriteString(task.ResultWriter(), "the result")
			return err
		}
		heartbeat.Beat(ctx)
		return nil
	})
	defer server.Shutdown()
	client, inspect := asynq.NewClient(at), asynq.NewInspector(at)
	defer client.Close()
	defer inspect.Close()
	for _, tc := range []struct{ kind, before, after, result string }{
		{"stalls", "9", "9", ""},
		{"result", "", `"nearly there"`, "the result"},
	} {
		task, err := client.Enqueue(asynq.NewTask(tc.kind, nil), asynq.Retention(time.Hour), asynq.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if got := <-found; got != tc.before {
			t.Errorf("%s: the last attempt found the detail %s, want %s", tc.kind, got, tc.before)
		}
		var info *asynq.TaskInfo
		harness.Eventually(t, "the task to be completed", func() bool {
			info, err = inspect.GetTaskInfo("default", task.ID)
			return err == nil && info.State == asynq.TaskStateCompleted
		})
		if got := details(task.ID); got != tc.after || string(info.Result) != tc.result {
			t.Errorf("%s: left the detail %s, want %s, and the result %q, want %q", tc.kind, got, tc.after, info.Result, tc.result)
		}
	}
}

// SPEC 13.4: asynq gives up nothing before the limits do, whose error says more.
func TestAsynqTimeout(t *testing.T) {
	t.Parallel()
	at := asynq.RedisClientOpt{Addr: startRedis(t).addr()}
	db := redis.NewClient(&redis.Options{Addr: at.Addr})
	defer db.Close()
	server := newAsynq(at, limitAsynq(timeout.Config{}, db), func(ctx context.Context, _ *asynq.Task) error { return stalls(ctx) })
	defer server.Shutdown()
	client, inspect := asynq.NewClient(at), asynq.NewInspector(at)
	defer client.Close()
	defer inspect.Close()
	task, err := client.Enqueue(asynq.NewTask("stalls", nil), asynq.Timeout(10*time.Second), asynq.MaxRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	var info *asynq.TaskInfo
	harness.Eventually(t, "the task to fail", func() bool {
		info, err = inspect.GetTaskInfo("default", task.ID)
		return err == nil && info.State == asynq.TaskStateArchived
	})
	if !strings.HasPrefix(info.LastErr, "Tool exceeded wall-clock limit of 8.") && !strings.HasPrefix(info.LastErr, "Tool exceeded wall-clock limit of 9s.") {
		t.Errorf("asynq keeps the error %q", info.LastErr)
	}
	if got := db.Get(t.Context(), "progress:"+task.ID).Val(); got != "9" {
		t.Errorf("left the detail %s", got)
	}
}

// SPEC 13.5: the next attempt finds the newest detail, and a plain beat leaves it alone.
func TestLeaseDetail(t *testing.T) {
	stalled := timeout.Config{Idle: 2 * time.Second}
	for _, tc := range []struct {
		name  string
		start func(testing.TB) *server
		fill  func(ctx context.Context, addr string) error
		try   func(ctx context.Context, addr string, work func(context.Context, string) error) error
	}{
		{"PostgreSQL", startPostgres, enqueuePostgres, func(ctx context.Context, addr string, work func(context.Context, string) error) error {
			db, err := pgxpool.New(ctx, dsn(addr))
			if err != nil {
				return err
			}
			defer db.Close()
			return workPostgres(ctx, db, leaseFor, stalled, func(ctx context.Context, r row) error { return work(ctx, string(r.Detail)) })
		}},
		{"Redis Streams", startRedis, enqueueRedis, func(ctx context.Context, addr string, work func(context.Context, string) error) error {
			db := redis.NewClient(&redis.Options{Addr: addr})
			defer db.Close()
			return workRedis(ctx, db, stream, group, "A", leaseFor, stalled, func(ctx context.Context, m entry) error { return work(ctx, string(m.Detail)) })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			addr := tc.start(t).addr()
			if err := tc.fill(t.Context(), addr); err != nil {
				t.Fatal(err)
			}
			if err := tc.try(t.Context(), addr, func(ctx context.Context, _ string) error { return stalls(ctx) }); !errors.Is(err, timeout.ErrIdle) {
				t.Fatal(err)
			}
			found := ""
			harness.Eventually(t, "the job to be tried again", func() bool {
				err := tc.try(t.Context(), addr, func(ctx context.Context, before string) error {
					heartbeat.Beat(ctx)
					found = before
					if before == "9" {
						return nil
					}
					return errors.New("another job")
				})
				return err == nil
			})
			if found != "9" {
				t.Errorf("found %q", found)
			}
		})
	}
}

// newAsynq starts a server that tries again after a second.
func newAsynq(at asynq.RedisConnOpt, limit asynq.MiddlewareFunc, work func(context.Context, *asynq.Task) error) *asynq.Server {
	mux := asynq.NewServeMux()
	if limit != nil {
		mux.Use(limit)
	}
	for _, kind := range []string{"stalls", "result", "index"} {
		mux.HandleFunc(kind, work)
	}
	s := asynq.NewServer(at, asynq.Config{Concurrency: 8, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second }})
	if err := s.Start(mux); err != nil {
		panic(err)
	}
	return s
}
