//go:build unix

package queues

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What faults do to the jobs of two workers, with the library and without: the table in docs/scaling.md.

const (
	jobCount = 8
	lasts    = 3 * time.Second // a job, when nothing happens
	leaseFor = 6 * time.Second // of PostgreSQL and Redis Streams
)

// The limits of a job with the library; the timeouts of River and asynq are the same with and without it.
var (
	faultLimits  = timeout.Config{Idle: 3 * time.Second, Total: 20 * time.Second, Grace: time.Second}
	queueTimeout = faultLimits.Total + faultLimits.Grace + 4*time.Second
)

// An engine is a queue under test.
type engine struct {
	name    string
	server  func(testing.TB) *server
	enqueue func(ctx context.Context, addr string) error // jobCount jobs, numbered from 0
	// work takes jobs until the process ends.
	work   func(ctx context.Context, addr, name string, library bool, fn func(ctx context.Context, job string) error) error
	window time.Duration // after which a job that has not been done is lost
	pause  time.Duration // of SIGSTOP
}

var engines = []engine{
	{"PostgreSQL", startPostgres, enqueuePostgres, postgresWorker, time.Minute, 15 * time.Second},
	{"Redis Streams", startRedis, enqueueRedis, redisWorker, time.Minute, 15 * time.Second},
	{"River", startPostgres, enqueueRiver, riverQueue, 2 * time.Minute, 80 * time.Second},
	{"asynq", startRedis, enqueueAsynq, asynqQueue, 4 * time.Minute, 130 * time.Second},
}

func engineNamed(name string) engine {
	return engines[slices.IndexFunc(engines, func(e engine) bool { return e.name == name })]
}

func init() { modes["worker"] = worker }

// worker works on jobs until it is killed, and says on stdout what happens to each. The first worker is called A, and in
// it a fault happens to the function itself, once per job.
func worker() {
	e, addr, name, fault := engineNamed(os.Args[1]), os.Args[2], os.Args[3], os.Args[5]
	library, _ := strconv.ParseBool(os.Args[4])
	var mu sync.Mutex
	attempts := map[string]int{}
	say := func(what, job string) (attempt int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, job)
		if what == "start" {
			attempts[job]++
		}
		return attempts[job]
	}
	fmt.Fprintln(os.Stderr, e.work(context.Background(), addr, name, library, func(ctx context.Context, job string) error {
		first := say("start", job) == 1 && name == "A"
		for i := range lasts / (100 * time.Millisecond) {
			if first && i == 10 && fault == "hangs" {
				<-ctx.Done()
			}
			if first && i == 10 && fault == "deaf" {
				time.Sleep(time.Hour)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			heartbeat.BeatWith(ctx, int(i))
			time.Sleep(100 * time.Millisecond)
		}
		say("ends", job)
		time.Sleep(300 * time.Millisecond)
		if ctx.Err() != nil { // the effect is made with it
			return context.Cause(ctx)
		}
		say("done", job)
		return nil
	}))
	os.Exit(1)
}

// An event is what a worker has said.
type event struct {
	at        time.Time
	who, what string
	job       string
}

// A history is all that the workers have said.
type history struct {
	mu     sync.Mutex
	events []event
}

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of a kind, of worker who or, if that is "", of both, since a time.
func (h *history) of(what, who string, since time.Time) (found []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.what == what && (who == "" || e.who == who) && !e.at.Before(since) {
			found = append(found, e)
		}
	}
	return found
}

// jobs counts the events of each job.
func jobs(events []event) map[string]int {
	n := map[string]int{}
	for _, e := range events {
		n[e.job]++
	}
	return n
}

// A result is a cell of the table.
type result struct {
	lost, twice int
	takeover    []time.Duration // from the fault to the next start of each job
}

func (r result) String() string {
	taken := "none"
	if n := len(r.takeover); n > 0 {
		slices.Sort(r.takeover)
		taken = fmt.Sprintf("%d after %.1f to %.1f s", n, r.takeover[0].Seconds(), r.takeover[n-1].Seconds())
	}
	return fmt.Sprintf("lost %d, done twice %d, taken over: %s", r.lost, r.twice, taken)
}

// SPEC 13.4: a job is neither lost nor held by a function that hangs, whatever happens to its worker.
func TestFaults(t *testing.T) {
	var mu sync.Mutex
	table := map[string]result{}
	t.Run("all", func(t *testing.T) {
		for _, fault := range []string{"kill", "stop", "restart", "hangs", "deaf", "slow"} {
			for _, e := range engines {
				for _, library := range []bool{true, false} {
					name := fmt.Sprintf("%s/%s/library=%v", e.name, fault, library)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						r := runFault(t, e, fault, library)
						t.Log(r)
						mu.Lock()
						defer mu.Unlock()
						table[name] = r
						if library && r.lost > 0 {
							t.Errorf("%d jobs are lost", r.lost)
						}
					})
				}
			}
		}
	})
	var names []string
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Log(name, table[name])
	}
}

func runFault(t *testing.T, e engine, fault string, library bool) (r result) {
	s := e.server(t)
	p := startProxy(t, s.addr())
	if err := e.enqueue(t.Context(), s.addr()); err != nil {
		t.Fatal(err)
	}
	var h history
	start := func(name, addr string) *os.Process {
		c := harness.Command("worker", e.name, addr, name, strconv.FormatBool(library), fault)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if what, job, ok := strings.Cut(lines.Text(), " "); ok {
					h.add(event{time.Now(), name, what, job})
				}
			}
		}()
		t.Cleanup(func() { _ = c.Process.Kill(); <-read; _ = c.Wait() })
		return c.Process
	}
	a := start("A", p.Addr().String())
	harness.Eventually(t, "the first worker to have all jobs", func() bool { return len(h.of("start", "A", time.Time{})) == jobCount })
	began := h.of("start", "A", time.Time{})[jobCount-1].at
	start("B", s.addr())
	time.Sleep(time.Until(began.Add(time.Second)))

	broke := time.Now()
	switch fault {
	case "kill":
		_ = a.Kill()
	case "stop":
		_ = a.Signal(syscall.SIGSTOP)
		defer time.AfterFunc(e.pause, func() { _ = a.Signal(syscall.SIGCONT) }).Stop()
	case "restart":
		s.stop()
		time.Sleep(2 * time.Second)
		s.start(t)
	case "slow": // the acknowledgements of A are under way for longer than a lease
		harness.Eventually(t, "the first job to end", func() bool { return len(h.of("ends", "A", broke)) > 0 })
		broke = time.Now()
		p.mu.Lock()
		defer time.AfterFunc(3*leaseFor/2, p.mu.Unlock).Stop()
	}
	finished := func() bool { return len(jobs(h.of("done", "", time.Time{}))) == jobCount }
	settle := 2 * leaseFor
	if fault == "stop" {
		settle += e.pause
	}
	for end := broke.Add(e.window); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if finished() && time.Since(broke) > settle {
			break
		}
	}

	done := jobs(h.of("done", "", time.Time{}))
	r.lost = jobCount - len(done)
	for _, n := range done {
		if n > 1 {
			r.twice++
		}
	}
	again := map[string]bool{}
	for _, e := range h.of("start", "", broke) {
		if !again[e.job] {
			again[e.job] = true
			r.takeover = append(r.takeover, e.at.Sub(broke))
		}
	}
	return r
}

// The engines. Those with a lease of their own are worked on with the library by the functions of this package, and
// without it by what one would write: a lease that a ticker renews for as long as the function runs.

func loop(ctx context.Context, take func() error) error {
	var wg sync.WaitGroup
	for range jobCount {
		wg.Go(func() {
			for ctx.Err() == nil {
				if take() != nil {
					time.Sleep(200 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// tick calls renew at a third of the lease while fn runs.
func tick(ctx context.Context, renew func() error, fn func(context.Context) error) error {
	ticker, end := time.NewTicker(leaseFor/3), make(chan struct{})
	defer close(end)
	defer ticker.Stop()
	go func() {
		for {
			select {
			case <-ticker.C:
				_ = renew()
			case <-end:
				return
			}
		}
	}()
	return fn(ctx)
}

func enqueuePostgres(ctx context.Context, addr string) error {
	c, err := pgx.Connect(ctx, dsn(addr))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, jobsTable); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "insert into jobs (args) select to_jsonb(n) from generate_series(0, $1) n", jobCount-1)
	return err
}

func postgresWorker(ctx context.Context, addr, _ string, library bool, fn func(context.Context, string) error) error {
	config, err := pgxpool.ParseConfig(dsn(addr))
	if err != nil {
		return err
	}
	config.MaxConns = 12
	db, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	if library {
		return loop(ctx, func() error {
			return workPostgres(ctx, db, leaseFor, faultLimits, func(ctx context.Context, job row) error { return fn(ctx, string(job.Args)) })
		})
	}
	return loop(ctx, func() error {
		var id, token int64
		var args json.RawMessage
		err := db.QueryRow(ctx, `update jobs set token = token + 1, leased_until = now() + $1 where id = (select id from jobs
			where not done and leased_until < now() limit 1 for update skip locked) returning id, token, args`, leaseFor).Scan(&id, &token, &args)
		if err != nil {
			return err
		}
		err = tick(ctx, func() error {
			_, err := db.Exec(ctx, `update jobs set leased_until = now() + $3 where id = $1 and token = $2`, id, token, leaseFor)
			return err
		}, func(ctx context.Context) error { return fn(ctx, string(args)) })
		_, err = db.Exec(ctx, `update jobs set done = $3, leased_until = now() where id = $1 and token = $2`, id, token, err == nil)
		return err
	})
}

const stream, group = "jobs", "workers"

func enqueueRedis(ctx context.Context, addr string) error {
	db := redis.NewClient(&redis.Options{Addr: addr})
	defer db.Close()
	err := db.XGroupCreateMkStream(ctx, stream, group, "0").Err()
	for i := range jobCount {
		err = cmp.Or(err, db.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"job", i}}).Err())
	}
	return err
}

func redisWorker(ctx context.Context, addr, name string, library bool, fn func(context.Context, string) error) error {
	db := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 24})
	job := func(m redis.XMessage) string { return fmt.Sprint(m.Values["job"]) }
	if library {
		return loop(ctx, func() error {
			return workRedis(ctx, db, stream, group, name, leaseFor, faultLimits, func(ctx context.Context, m entry) error {
				return fn(ctx, m.Values[1].(string))
			})
		})
	}
	return loop(ctx, func() error {
		msgs, _, err := db.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: stream, Group: group, Consumer: name, MinIdle: leaseFor, Start: "0", Count: 1}).Result()
		if err == nil && len(msgs) == 0 {
			var got []redis.XStream
			got, err = db.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: name, Streams: []string{stream, ">"}, Count: 1, Block: time.Second}).Result()
			if err == nil {
				msgs = got[0].Messages
			}
		}
		if err != nil {
			return err
		}
		err = tick(ctx, func() error {
			return db.XClaimJustID(ctx, &redis.XClaimArgs{Stream: stream, Group: group, Consumer: name, Messages: []string{msgs[0].ID}}).Err()
		}, func(ctx context.Context) error { return fn(ctx, job(msgs[0])) })
		if err != nil {
			return err
		}
		return db.XAck(ctx, stream, group, msgs[0].ID).Err()
	})
}

func enqueueRiver(ctx context.Context, addr string) error {
	if err := migrateRiver(ctx, dsn(addr)); err != nil {
		return err
	}
	client, pool, err := newRiver(ctx, dsn(addr), &river.Config{}, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	for i := range jobCount {
		_, insert := client.Insert(ctx, riverArgs{N: i}, nil)
		err = cmp.Or(err, insert)
	}
	return err
}

func riverQueue(ctx context.Context, addr, _ string, library bool, fn func(context.Context, string) error) error {
	config := &river.Config{JobTimeout: queueTimeout, RescueStuckJobsAfter: queueTimeout}
	if library {
		config.Middleware = []rivertype.Middleware{limitRiver(faultLimits)}
	}
	client, _, err := newRiver(ctx, dsn(addr), config, func(ctx context.Context, job *river.Job[riverArgs]) error {
		return fn(ctx, strconv.Itoa(job.Args.N))
	})
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		return err
	}
	<-client.Stopped()
	return errors.New("River has stopped")
}

func enqueueAsynq(_ context.Context, addr string) error {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: addr})
	defer client.Close()
	var err error
	for i := range jobCount {
		_, enqueue := client.Enqueue(asynq.NewTask("index", []byte(strconv.Itoa(i))), asynq.Timeout(queueTimeout))
		err = cmp.Or(err, enqueue)
	}
	return err
}

func asynqQueue(_ context.Context, addr, _ string, library bool, fn func(context.Context, string) error) error {
	at := asynq.RedisClientOpt{Addr: addr}
	var limit asynq.MiddlewareFunc
	if library {
		limit = limitAsynq(faultLimits, redis.NewClient(&redis.Options{Addr: addr}))
	}
	newAsynq(at, limit, func(ctx context.Context, task *asynq.Task) error { return fn(ctx, string(task.Payload())) })
	select {}
}
