package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A job is a row of a table. Whoever has its token may write it.
type job struct {
	mu     sync.Mutex
	token  int
	until  time.Time
	page   any
	status string
}

// take leases the job, as "update … where leased_until < now() returning token, page" does.
func (j *job) take(d time.Duration) (token int, page any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.token++
	j.until = time.Now().Add(d)
	return j.token, j.page
}

// write writes what only the holder may, as "update … where token = $2" does.
func (j *job) write(s lease.Checkpoint, set func()) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.token != s.Token {
		return lease.ErrLost
	}
	j.page = s.Detail
	set()
	return nil
}

func ExampleRun() {
	j, ctx := &job{}, context.Background()
	attempt := func(work func(context.Context, int) error) error {
		const d = 30 * time.Second
		asked := time.Now()
		token, page := j.take(d)
		done, _ := page.(int)
		return lease.Run(ctx, lease.Lease{
			Duration: d, Since: asked, Token: token, Detail: page,
			Renew: func(_ context.Context, s lease.Checkpoint) error {
				return j.write(s, func() { j.until = time.Now().Add(d) })
			},
			Release: func(_ context.Context, s lease.Checkpoint) error {
				return j.write(s, func() { j.until, j.status = time.Time{}, fmt.Sprint(s.Err) })
			},
		}, func(ctx context.Context) error { return work(ctx, done) }, timeout.Config{Idle: time.Minute})
	}
	err := attempt(func(ctx context.Context, _ int) error {
		for page := 1; page <= 3; page++ {
			heartbeat.BeatWith(ctx, page)
		}
		return errors.New("the printer is out of paper")
	})
	fmt.Println(err, "after page", j.page)
	err = attempt(func(_ context.Context, done int) error {
		fmt.Println("continue after page", done)
		return nil
	})
	fmt.Println(err, j.status)
	// Output:
	// the printer is out of paper after page 3
	// continue after page 3
	// <nil> <nil>
}

func ExampleCheck() {
	var send func(ctx context.Context) error = func(ctx context.Context) error {
		if err := lease.Check(ctx); err != nil {
			return err
		}
		fmt.Println("sent")
		return nil
	}
	taken := lease.Lease{Duration: time.Minute, Since: time.Now().Add(-time.Hour), Renew: func(context.Context, lease.Checkpoint) error { return nil }}
	fresh := taken
	fresh.Since = time.Now()
	fmt.Println(lease.Run(context.Background(), fresh, send))
	fmt.Println(lease.Run(context.Background(), taken, send))
	// Output:
	// sent
	// <nil>
	// lease lost: somebody else may hold it
}
