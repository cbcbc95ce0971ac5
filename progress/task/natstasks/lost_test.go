package natstasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

const lease = natstasks.DefaultLease

// SPEC 13.3, guarantee 5: the task of a replica that is cut off, as one that was killed, is failed when its lease has
// ended, and not before, whether somebody asks for it or not. If it comes back, its tool is aborted, and what that
// returns is dropped.
func TestGone(t *testing.T) {
	for _, asked := range []bool{true, false} {
		t.Run(fmt.Sprint("asked ", asked), func(t *testing.T) {
			inBubble(t, func(w *world) {
				asks, l := &task.Tasks{Store: w.open()}, w.link()
				s, err := natstasks.Open(context.Background(), w.connect(l))
				if err != nil {
					t.Fatal(err)
				}
				runs, js := &task.Tasks{Store: s}, w.connect(w.link())
				stopped := make(chan error, 1)
				r := w.mustBegin(runs, func(ctx context.Context) (string, error) {
					<-ctx.Done()
					stopped <- context.Cause(ctx)
					return "too late", nil
				})
				time.Sleep(3*lease + lease/6)
				l.Cut() // its last renewal is a sixth of the lease old
				var got map[string]any
				took := w.eventually("it to be failed", func() bool {
					if !asked {
						return w.status(js, r.ID) == task.Failed
					}
					got, err = ask(asks, client, "tasks/get", r.ID)
					if err != nil {
						t.Error(err)
					}
					return got["status"] == string(task.Failed)
				})
				most := lease // if nobody asks, the next look
				if asked {
					most = lease*5/6 + 50*time.Millisecond
				}
				if took < lease*5/6 || took > most+lease/3 {
					t.Errorf("failed after %v", took)
				}
				raw, _ := json.Marshal(got["error"])
				if e := (task.Error{}); asked && (json.Unmarshal(raw, &e) != nil || e.Code != -32603 || !strings.Contains(e.Message, "gone")) {
					t.Errorf("%s", raw)
				}
				l.Mend()
				time.Sleep(lease)
				if cause := <-stopped; !errors.Is(cause, task.ErrLost) || w.status(js, r.ID) != task.Failed {
					t.Errorf("back again: %v, %v", cause, w.status(js, r.ID))
				}
				if err := errors.Join(runs.Close(), s.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// SPEC 13.3: where all replicas are gone, the next one finds what they have left.
func TestAllGone(t *testing.T) {
	inBubble(t, func(w *world) {
		l := w.link()
		s, err := natstasks.Open(context.Background(), w.connect(l))
		if err != nil {
			t.Fatal(err)
		}
		r := w.create(s, "one")
		l.Cut()
		s.Close()
		time.Sleep(lease)
		w.open()
		js := w.connect(w.link())
		// It may not judge before it has been connected for a lease.
		if took := w.eventually("it to be failed", func() bool { return w.status(js, r.ID) == task.Failed }); took < lease || took > lease*4/3+time.Second {
			t.Errorf("failed after %v", took)
		}
	})
}

// SPEC 13.3: what a replica that closes has left unfinished is failed without waiting for the lease, and its own outcome
// does not come after that.
func TestClosed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.open()
		a, js := w.open(), w.connect(w.link())
		tasks := &task.Tasks{Store: a}
		r := w.mustBegin(tasks, hangs)
		time.Sleep(2 * lease) // for the other to be settled
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Error(err)
		}
		if took := w.eventually("it to be failed", func() bool { return w.status(js, r.ID) == task.Failed }); took > lease/3+time.Second {
			t.Errorf("failed after %v", took)
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		if got := w.status(js, r.ID); got != task.Failed {
			t.Errorf("its own outcome came after that: %q", got)
		}
		time.Sleep(15 * time.Minute) // what has followed the task gives up
	})
}

// SPEC 13.3, guarantee 6: tools run on through an outage that is longer than the lease, what ends meanwhile is stored
// after it, and nobody is taken for gone.
func TestOutage(t *testing.T) {
	inBubble(t, func(w *world) {
		runs, asks := &task.Tasks{Store: w.open()}, &task.Tasks{Store: w.open()}
		takes := func(d time.Duration) tool {
			return func(ctx context.Context) (string, error) {
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-time.After(d):
					return "done", nil
				}
			}
		}
		during, after := w.mustBegin(runs, takes(2*lease)), w.mustBegin(runs, takes(5*lease))
		waiting := make(chan error, 1)
		go func() {
			got, err := ask(asks, adapter.Caller{Version: "2025-11-25", Principal: "ann"}, "tasks/result", during.ID)
			if err == nil && !strings.Contains(fmt.Sprint(got), "content") {
				err = fmt.Errorf("%v", got)
			}
			waiting <- err
		}()
		time.Sleep(lease)
		w.stop()
		time.Sleep(3 * lease)
		w.start()
		for _, r := range []*task.Record{during, after} {
			var got map[string]any
			var err error
			w.eventually("the end", func() bool {
				got, err = ask(asks, client, "tasks/get", r.ID)
				return err == nil && got["status"] != string(task.Working)
			})
			if got["status"] != string(task.Completed) {
				t.Errorf("%v", got)
			}
		}
		if err := <-waiting; err != nil {
			t.Errorf("tasks/result: %v", err)
		}
	})
}

// SPEC 13.3, guarantee 6: where all leases have ended together, after an outage or with machines that were suspended
// together, nobody is taken for gone who is back within the lease.
func TestAllLeasesEnd(t *testing.T) {
	for _, outage := range []bool{true, false} {
		t.Run(fmt.Sprint("outage ", outage), func(t *testing.T) {
			inBubble(t, func(w *world) {
				a := w.open()
				time.Sleep(lease / 6) // so that the second renews after the first
				slow, err := natstasks.Open(context.Background(), w.connect(w.link(), nats.ReconnectWait(lease/2)))
				if err != nil {
					t.Fatal(err)
				}
				w.Cleanup(func() { slow.Close() })
				r := w.create(slow, "one")
				time.Sleep(2 * lease) // both may judge
				if outage {
					w.stop()
					time.Sleep(lease)
					w.start()
				}
				// The server keeps the files of leases for longer than it must.
				leases, err := w.connect(w.link()).Stream(context.Background(), leasesStream)
				if err != nil {
					t.Fatal(err)
				}
				if err := leases.Purge(context.Background()); err != nil {
					t.Fatal(err)
				}
				for begun := time.Now(); time.Since(begun) < 3*lease; time.Sleep(100 * time.Millisecond) {
					if got, err := a.Get(context.Background(), "ann", r.ID); err == nil && got.Status != task.Working {
						t.Fatalf("after %v: %v", time.Since(begun), got.Status)
					}
				}
			})
		})
	}
}

// SPEC 11.7, 13.3, guarantee 7: nothing is left in the buckets when the tasks have expired, large results included.
func TestEmptyAfterRetention(t *testing.T) {
	inBubble(t, func(w *world) {
		const retention = 10 * time.Second
		tasks, js := &task.Tasks{Store: w.open(), Retention: retention}, w.connect(w.link())
		var ids []string
		for _, text := range []string{"small", strings.Repeat("x", 2<<20)} {
			r := w.mustBegin(tasks, func(context.Context) (string, error) { return text, nil })
			w.eventually("the end", func() bool { return w.status(js, r.ID) == task.Completed })
			ids = append(ids, r.ID)
		}
		time.Sleep(retention - time.Second)
		for _, id := range ids {
			if got, err := ask(tasks, client, "tasks/get", id); err != nil || got["status"] != string(task.Completed) {
				t.Errorf("%.300v, %v", got, err)
			}
		}
		time.Sleep(time.Second)
		for _, id := range ids {
			_, err := ask(tasks, client, "tasks/get", id)
			if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != -32602 {
				t.Error(err)
			}
		}
		time.Sleep(lease + 2*time.Second)
		if a, b := w.messages(js, tasksStream), w.messages(js, resultsStream); a+b > 0 {
			t.Errorf("%d records and %d messages of results left", a, b)
		}
	})
}

// SPEC 13.3: a replica whose look at the tasks takes longer than a lease keeps its own meanwhile.
func TestLeaseWhileLooking(t *testing.T) {
	inBubble(t, func(w *world) {
		s, f := w.openFaulty()
		replica, _, _ := strings.Cut(w.create(s, "one").ID, ".")
		f.deaf.Store(true)
		defer f.deaf.Store(false)
		leases, err := w.connect(w.link()).Stream(context.Background(), leasesStream)
		if err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < 5*lease; time.Sleep(200 * time.Millisecond) {
			if _, err := leases.GetLastMsgForSubject(context.Background(), "$KV."+natstasks.DefaultBucket+"-leases."+replica); err != nil {
				t.Fatalf("after %v: %v", time.Since(begun), err)
			}
		}
	})
}

// SPEC 13.3, guarantee 5: a replica about which a look was not certain is looked at again, also if nobody asks.
func TestLookedAtAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		_, f := w.openFaulty()
		b, js := w.open(), w.connect(w.link())
		r := w.create(b, "one")
		time.Sleep(2 * lease) // the first knows the second, and may judge
		f.away.Store(true)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * lease)
		if got := w.status(js, r.ID); got != task.Working {
			t.Errorf("judged without a lease to be seen: %q", got)
		}
		f.away.Store(false)
		if took := w.eventually("a look", func() bool { return w.status(js, r.ID) == task.Failed }); took > lease/3+time.Second {
			t.Errorf("failed after %v", took)
		}
	})
}

// SPEC 13.3, guarantee 5: replicas that were there so shortly that no other has seen their leases.
func TestGoneAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.open()
		time.Sleep(3 * lease) // it has looked at all
		js := w.connect(w.link())
		var all []task.Record
		for range 3 {
			b := w.open()
			all = append(all, w.create(b, "one"))
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, r := range all {
			if took := w.eventually("a look", func() bool { return w.status(js, r.ID) == task.Failed }); took > 11*lease {
				t.Errorf("failed after %v", took)
			}
		}
	})
}
