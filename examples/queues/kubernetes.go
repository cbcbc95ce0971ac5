package queues

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A leaseClient is the part of client-go's LeaseInterface that is needed.
type leaseClient interface {
	Get(ctx context.Context, name string, o meta.GetOptions) (*coordination.Lease, error)
	Update(ctx context.Context, l *coordination.Lease, o meta.UpdateOptions) (*coordination.Lease, error)
}

var errHeld = errors.New("somebody else holds the lease")

// workKubernetes works while it holds an object of the kind Lease, as the holder me, a name that only one process has.
// The lease depends on the clocks of two nodes, which may differ by a twentieth of d.
func workKubernetes(ctx context.Context, client leaseClient, name, me string, d time.Duration, limits timeout.Config,
	work func(ctx context.Context, detail json.RawMessage) error) error {
	var before json.RawMessage
	var token int32
	write := func(ctx context.Context, detail any, take bool, holder string) error {
		l, err := client.Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		now, seconds, term := meta.NowMicro(), int32(d/time.Second), ptr.Deref(l.Spec.LeaseTransitions, 0)
		switch {
		case take && ptr.Deref(l.Spec.HolderIdentity, "") != "" && ptr.Deref(l.Spec.RenewTime, meta.MicroTime{}).Add(
			max(d, time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0))*time.Second)).After(now.Time): // the holder's may be longer
			return errHeld
		case take:
			token, before, l.Spec.AcquireTime = term+1, json.RawMessage(cmp.Or(l.Annotations["detail"], "null")), &now
		case term != token:
			return lease.ErrLost
		default:
			if text, err := json.Marshal(detail); err == nil { // otherwise the detail before stays: no reason to lose the lease
				meta.SetMetaDataAnnotation(&l.ObjectMeta, "detail", string(text))
			}
		}
		l.Spec.HolderIdentity, l.Spec.LeaseTransitions, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &holder, &token, &now, &seconds
		_, err = client.Update(ctx, l, meta.UpdateOptions{}) // a conflict is tried again, and Get tells whose it is
		return err
	}
	d = max(d.Truncate(time.Second), time.Second) // the object has whole seconds
	asked := time.Now()
	if err := write(ctx, nil, true, me); err != nil {
		return err
	}
	return lease.Run(ctx, lease.Lease{
		Duration: d, Since: asked, Detail: before,
		Renew:   func(ctx context.Context, s lease.Checkpoint) error { return write(ctx, s.Detail, false, me) },
		Release: func(ctx context.Context, s lease.Checkpoint) error { return write(ctx, s.Detail, false, "") },
	}, func(ctx context.Context) error { return work(ctx, before) }, limits)
}
