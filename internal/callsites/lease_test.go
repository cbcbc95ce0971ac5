package callsites_test

import (
	"context"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// hold has the lease of an engine for as long as fn works.
func hold(l lease.Lease, fn func(context.Context) error) error {
	l.Duration = time.Second
	if l.Renew == nil {
		l.Renew = func(context.Context, lease.Checkpoint) error { return nil }
	}
	return lease.Run(context.Background(), l, fn, timeout.Config{Idle: idle, Grace: grace})
}

func init() {
	const handedOn = "it is handed to Renew and Release as it is"
	quick := func(context.Context) error { return nil }
	add(Table{
		"lease.Lease.Renew": {Within: within, Do: func(s *Site) {
			_ = hold(lease.Lease{Renew: func(ctx context.Context, _ lease.Checkpoint) error { s.Hit(ctx); return nil }}, obeys)
		}},
		"lease.Lease.Release": {Within: time.Second, Do: func(s *Site) {
			_ = hold(lease.Lease{Release: func(ctx context.Context, _ lease.Checkpoint) error { s.Hit(ctx); return nil }}, quick)
		}},
		"lease.Run(fn)": {Within: within + time.Second, Do: func(s *Site) {
			_ = hold(lease.Lease{}, func(ctx context.Context) error { s.Hit(ctx, own(ctx)); return nil })
		}},
		"lease.Lease.Token":       {Never: handedOn},
		"lease.Lease.Detail":      {Never: handedOn},
		"lease.Checkpoint.Token":  {Never: "the library makes it"},
		"lease.Checkpoint.Detail": {Never: "the library makes it"},
		"lease.Checkpoint.Err":    {Never: "the library makes it"},
	})
}
