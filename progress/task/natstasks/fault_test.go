package natstasks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

const tasksStream, leasesStream = "KV_" + natstasks.DefaultBucket, "KV_" + natstasks.DefaultBucket + "-leases"

// A faulty connection does not answer some questions about streams. What cannot be made to fail on
// demand in a server is one stream without a leader beside others that have theirs.
type faulty struct {
	jetstream.JetStream
	deaf atomic.Bool // to what the stream of tasks has
	away atomic.Bool // reads of leases fail
}

func (f *faulty) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if name == tasksStream && f.deaf.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	st, err := f.JetStream.Stream(ctx, name)
	return &faultyStream{st, name, f}, err
}

func (f *faulty) CreateStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	st, err := f.JetStream.CreateStream(ctx, c)
	return &faultyStream{st, c.Name, f}, err
}

type faultyStream struct {
	jetstream.Stream
	name string
	of   *faulty
}

func (s *faultyStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	if s.name == leasesStream && s.of.away.Load() {
		return nil, errors.New("no leader")
	}
	return s.Stream.GetLastMsgForSubject(ctx, subject)
}

func openFaulty(t *testing.T, url string, opts ...natstasks.Option) (*natstasks.Store, *faulty) {
	t.Helper()
	f := &faulty{JetStream: connect(t, url)}
	s, err := natstasks.Open(t.Context(), f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, f
}

func running(id string) task.Record {
	now := time.Now()
	return task.Record{ID: id, Owner: "ann", Status: task.Working, Started: now, Created: now, Updated: now, Retention: time.Minute}
}

func mustCreate(t *testing.T, s *natstasks.Store, id string) task.Record {
	t.Helper()
	r, err := s.Create(t.Context(), running(id))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ended(r task.Record, result string) task.Record {
	r.Status, r.Expires = task.Completed, time.Now().Add(r.Retention)
	r.Answer = &task.Answer{Result: []byte(result)}
	return r
}

// SPEC 13.3: a replica whose look at the tasks takes longer than a lease keeps its own meanwhile.
func TestLeaseWhileLooking(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // and a renewal every 2 s, so a stall of 3 s ends none
	url := startServer(t, -1, t.TempDir()).ClientURL()
	s, f := openFaulty(t, url, natstasks.WithLease(lease))
	replica, _, _ := strings.Cut(mustCreate(t, s, "one").ID, ".")
	f.deaf.Store(true)
	defer f.deaf.Store(false)
	leases, err := connect(t, url).Stream(t.Context(), leasesStream)
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 3*lease; time.Sleep(20 * time.Millisecond) {
		if _, err := leases.GetLastMsgForSubject(t.Context(), "$"+strings.Replace(leasesStream, "_", ".", 1)+"."+replica); err != nil {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
	}
}

// SPEC 13.3, guarantee 5: a replica about which a look was not certain is looked at again, also if nobody
// asks.
func TestLookedAtAgain(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // so a stall ends none
	url := startServer(t, -1, t.TempDir()).ClientURL()
	_, f := openFaulty(t, url, natstasks.WithLease(lease))
	b := open(t, url)
	r := mustCreate(t, b, "one")
	time.Sleep(2 * lease) // the first knows the second, and may judge
	f.away.Store(true)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	js := connect(t, url)
	time.Sleep(2 * lease)
	if got := status(t, js, r.ID); got != task.Working {
		t.Errorf("judged without a lease to be seen: %q", got)
	}
	f.away.Store(false)
	eventually(t, lease+slack, func() bool { return status(t, js, r.ID) == task.Failed }, func() string { return "nobody has looked" })
}

// SPEC 13.3, guarantee 5: a replica that was there so shortly that no other has seen its lease.
func TestGoneAtOnce(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	url := startServer(t, -1, t.TempDir()).ClientURL()
	open(t, url, natstasks.WithLease(lease))
	time.Sleep(3 * lease) // it has looked at all
	js := connect(t, url)
	var ids []string
	for range 3 {
		b := open(t, url)
		ids = append(ids, mustCreate(t, b, "one").ID)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, id := range ids {
		eventually(t, 12*lease+slack, func() bool { return status(t, js, id) == task.Failed }, func() string { return "nobody has looked" })
	}
}

// SPEC 13.3: where all leases have ended together, as after machines that were suspended together, nobody
// is taken for gone who is back within a lease.
func TestAllLeasesEnd(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	url := startServer(t, -1, t.TempDir()).ClientURL()
	a := open(t, url, natstasks.WithLease(lease))
	time.Sleep(lease / 6) // so that the second renews after the first
	b := open(t, url)
	r := mustCreate(t, b, "one")
	time.Sleep(2 * lease) // both may judge
	leases, err := connect(t, url).Stream(t.Context(), leasesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 2*lease; time.Sleep(20 * time.Millisecond) {
		if got, err := a.Get(t.Context(), "ann", r.ID); err != nil || got.Status != task.Working {
			t.Fatalf("after %v: %v, %v", time.Since(begun), got.Status, err)
		}
	}
}

// A store that is closed takes no task, which would be nobody's.
func TestCreateAfterClose(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	s := open(t, url)
	before := mustCreate(t, s, "one")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if r, err := s.Create(t.Context(), running("two")); err == nil {
		t.Errorf("%+v", r)
	}
	// An outcome may still come.
	if _, err := s.Update(t.Context(), ended(before, `{}`)); err != nil {
		t.Error(err)
	}
}

// A Close ends the waits, for tasks of this replica and of others.
func TestCloseWhileWaiting(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	a, b := open(t, url), open(t, url)
	ended := make(chan error, 2)
	for _, r := range []task.Record{mustCreate(t, a, "one"), mustCreate(t, b, "one")} {
		go func() {
			_, err := a.Wait(context.Background(), "ann", r.ID, r.Revision)
			ended <- err
		}()
	}
	time.Sleep(100 * time.Millisecond)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		select {
		case err := <-ended:
			if err == nil || errors.Is(err, task.ErrUnknown) {
				t.Error(err)
			}
		case <-time.After(slack):
			t.Fatal("Wait goes on")
		}
	}
}

// A bucket of tasks that somebody has deleted alone is made anew for the next task.
func TestTasksDeleted(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	s := open(t, url)
	mustCreate(t, s, "one")
	if err := connect(t, url).DeleteStream(t.Context(), tasksStream); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, "two")
}

// SPEC 11.7: a task in a bucket that is full can end, and be cancelled.
func TestFull(t *testing.T) {
	t.Parallel()
	testFull(t, startServer(t, -1, t.TempDir()).ClientURL(), natstasks.WithBucket("full"))
}

func testFull(t *testing.T, url string, opts ...natstasks.Option) {
	for name, tc := range map[string]struct {
		bound natstasks.Option
		tasks int // at least
	}{
		"of tasks": {natstasks.WithMaxTasks(20), 20},
		"of bytes": {natstasks.WithMaxBytes(256 << 10), 50},
	} {
		t.Run(name, func(t *testing.T) {
			opts := append(opts[:len(opts):len(opts)], tc.bound, natstasks.WithBucket("full-"+strings.ReplaceAll(name, " ", "-")))
			s := open(t, url, opts...)
			var all []task.Record
			for {
				r := running(fmt.Sprint("id", len(all)))
				r.Message = strings.Repeat("x", 1<<10)
				r, err := s.Create(t.Context(), r)
				if errors.Is(err, task.ErrFull) {
					break
				}
				if err != nil || len(all) > 1000 {
					t.Fatal(len(all), err)
				}
				all = append(all, r)
			}
			if len(all) < tc.tasks {
				t.Errorf("full of %d tasks", len(all))
			}
			for i, r := range all {
				if i%2 == 0 {
					r = ended(r, `{"content":[{"type":"text","text":"done"}]}`)
				} else {
					r = r.Lost(time.Now())
				}
				if _, err := s.Update(t.Context(), r); err != nil {
					t.Fatalf("end of task %d of %d: %v", i, len(all), err)
				}
			}
		})
	}
}
