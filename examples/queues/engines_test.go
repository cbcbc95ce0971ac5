package queues

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

const (
	duration = 30 * time.Second
	grace    = 5 * time.Second
)

// An outage is between a worker and its engine.
type outage struct{ from, until time.Time }

var errOutage = errors.New("the engine cannot be reached")

func (o *outage) err() error {
	if now := time.Now(); o != nil && now.After(o.from) && now.Before(o.until) {
		return errOutage
	}
	return nil
}

// A holding is one attempt at the only piece of work that there is.
type holding struct {
	worker string
	detail string // of the attempt before
	begin  time.Duration
	end    time.Duration
	err    error
}

// A try takes the work if it is to be had, and does it.
type try func(ctx context.Context, worker string, o *outage, limits timeout.Config, work func(context.Context, string) error) error

// hold has two workers try to get the work once a second for ten minutes, and returns what they got. The engine of the
// first has an outage from then until then.
func hold(t *testing.T, from, until time.Duration, do func(ctx context.Context, n int) error, try try) (all []holding) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	for _, name := range []string{"A", "B"} {
		var o *outage
		if name == "A" {
			o = &outage{start.Add(from), start.Add(until)}
		}
		wg.Go(func() {
			if name == "B" {
				time.Sleep(time.Second / 2)
			}
			for ; time.Since(start) < 10*time.Minute; time.Sleep(time.Second) {
				n := -1
				err := try(t.Context(), name, o, timeout.Config{Idle: 2 * time.Minute, Grace: grace}, func(ctx context.Context, before string) error {
					mu.Lock()
					n = len(all)
					all = append(all, holding{worker: name, detail: before, begin: time.Since(start), end: -1})
					mu.Unlock()
					defer func() { mu.Lock(); all[n].end = time.Since(start); mu.Unlock() }()
					return do(ctx, n)
				})
				if n >= 0 {
					mu.Lock()
					all[n].err = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return all
}

var heldEngines = []struct {
	name    string
	details bool // it has a place for them
	renewed bool // the work is offered again when it is done
	try     func() try
}{
	{"SQS", false, false, func() try {
		q := &fakeQueue{}
		return func(ctx context.Context, _ string, o *outage, limits timeout.Config, work func(context.Context, string) error) error {
			return workSQS(ctx, queueClient{q, o}, "queue", duration, limits, func(ctx context.Context, _ types.Message) error { return work(ctx, "") })
		}
	}},
	{"Kubernetes", true, true, func() try {
		f := &fakeLease{}
		return func(ctx context.Context, me string, o *outage, limits timeout.Config, work func(context.Context, string) error) error {
			return workKubernetes(ctx, leaseObject{f, o}, "leader", me, duration, limits, func(ctx context.Context, before json.RawMessage) error {
				return work(ctx, string(before))
			})
		}
	}},
}

// SPEC 13.4: silent healthy work is not taken over; work that hangs, or whose worker is cut off, is, and not before its
// function has ended.
func TestHeld(t *testing.T) {
	for _, e := range heldEngines {
		t.Run(e.name+"/silent", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := hold(t, 0, 0, func(ctx context.Context, _ int) error {
					heartbeat.BeatWith(ctx, func() {}) // which no engine can store
					time.Sleep(2*time.Minute - 1)
					return nil
				}, e.try())
				if all[0].err != nil || all[0].end-all[0].begin != 2*time.Minute-1 || len(all) > 1 && (!e.renewed || all[1].begin < all[0].end) {
					t.Errorf("%+v", all)
				}
			})
		})
		t.Run(e.name+"/hangs", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := hold(t, 0, 0, func(ctx context.Context, n int) error {
					if n > 0 {
						return nil
					}
					heartbeat.BeatWith(ctx, "page 7")
					<-ctx.Done()
					return ctx.Err()
				}, e.try())
				if len(all) < 2 || !errors.Is(all[0].err, timeout.ErrIdle) || all[0].end != 2*time.Minute || all[1].begin > 2*time.Minute+time.Second {
					t.Fatalf("%+v", all)
				}
				if want := strconv.Quote("page 7"); e.details && all[1].detail != want {
					t.Errorf("the next attempt finds %s, want %s", all[1].detail, want)
				}
			})
		})
		t.Run(e.name+"/cut off", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := hold(t, 10*time.Second, 5*time.Minute, func(ctx context.Context, n int) error {
					if n > 0 {
						time.Sleep(time.Minute)
						return lease.Check(ctx)
					}
					<-ctx.Done()
					time.Sleep(grace - 1)
					return ctx.Err()
				}, e.try())
				if len(all) < 2 || all[1].worker != "B" || !errors.Is(all[0].err, lease.ErrLost) || all[1].err != nil {
					t.Fatalf("%+v", all)
				}
				if all[0].end > all[1].begin || all[1].begin > 10*time.Second+duration+2*time.Second {
					t.Errorf("the first works until %v, the second from %v", all[0].end, all[1].begin)
				}
			})
		})
	}
}

// SPEC 13.4: a worker that was taken over, such as by hand, is told with its next renewal, and writes nothing.
func TestKubernetesTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLease{}
		err := workKubernetes(t.Context(), leaseObject{f, nil}, "leader", "A", duration, timeout.Config{Total: time.Hour}, func(ctx context.Context, _ json.RawMessage) error {
			time.Sleep(time.Second)
			f.mu.Lock()
			holder, term := "C", *f.Spec.LeaseTransitions+1
			f.Spec.HolderIdentity, f.Spec.LeaseTransitions, f.ResourceVersion = &holder, &term, "100"
			f.mu.Unlock()
			<-ctx.Done()
			if left := time.Now(); left.Sub(f.Spec.RenewTime.Time) != duration/6 {
				t.Errorf("told %v after the last renewal", left.Sub(f.Spec.RenewTime.Time))
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, lease.ErrLost) || *f.Spec.HolderIdentity != "C" || f.ResourceVersion != "100" {
			t.Errorf("%v, held by %s", err, *f.Spec.HolderIdentity)
		}
	})
}

// A fakeQueue is an SQS queue with one message.
type fakeQueue struct {
	mu      sync.Mutex
	visible time.Time
	deleted bool
	handles int
}

// A queueClient is one worker's.
type queueClient struct {
	*fakeQueue
	*outage
}

func (q queueClient) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := q.err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted || time.Now().Before(q.visible) {
		return &sqs.ReceiveMessageOutput{}, nil
	}
	q.handles++
	q.visible = time.Now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
	handle := strconv.Itoa(q.handles)
	return &sqs.ReceiveMessageOutput{Messages: []types.Message{{ReceiptHandle: &handle}}}, nil
}

func (q queueClient) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	if err := q.err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); q.deleted || !now.Before(q.visible) {
		return nil, &types.MessageNotInflight{}
	}
	q.visible = time.Now().Add(time.Duration(in.VisibilityTimeout) * time.Second) // whosever handle it is
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (q queueClient) DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	if err := q.err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deleted = true
	return &sqs.DeleteMessageOutput{}, nil
}

// A fakeLease is an object of the kind Lease.
type fakeLease struct {
	mu sync.Mutex
	coordination.Lease
}

// A leaseObject is one worker's.
type leaseObject struct {
	*fakeLease
	*outage
}

func (f leaseObject) Get(context.Context, string, meta.GetOptions) (*coordination.Lease, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.DeepCopy(), nil
}

func (f leaseObject) Update(_ context.Context, l *coordination.Lease, _ meta.UpdateOptions) (*coordination.Lease, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.ResourceVersion != f.ResourceVersion {
		return nil, errors.New("the object has been modified")
	}
	l.DeepCopyInto(&f.Lease)
	n, _ := strconv.Atoi(f.ResourceVersion)
	f.ResourceVersion = strconv.Itoa(n + 1)
	return f.DeepCopy(), nil
}
