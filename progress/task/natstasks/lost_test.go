package natstasks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

const lease = 15 * time.Second // the default

// SPEC 13.3: where all replicas are gone, the next one finds what they have left.
func TestAllGone(t *testing.T) {
	inBubble(t, func(w *world) {
		l := w.link()
		s, err := natstasks.Open(context.Background(), w.connect(l), natstasks.Options{})
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
		if took := w.eventually("it to be failed", func() bool { return w.status(js, r.ID) == task.Failed }); took > lease {
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

// SPEC 13.3, guarantee 6: where all leases have ended together, after an outage or with machines that were suspended
// together, nobody is taken for gone who is back within the lease.
func TestAllLeasesEnd(t *testing.T) {
	for _, outage := range []bool{true, false} {
		t.Run(fmt.Sprint("outage ", outage), func(t *testing.T) {
			inBubble(t, func(w *world) {
				a := w.open()
				time.Sleep(lease / 6) // so that the second renews after the first
				slow, err := natstasks.Open(context.Background(), w.connect(w.link(), nats.ReconnectWait(lease/2)), natstasks.Options{})
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
			if _, err := leases.GetLastMsgForSubject(context.Background(), "$KV.mcp-tasks-leases."+replica); err != nil {
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
