package natstasks

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// live renews the lease until the store is closed. It does nothing else that could make a renewal
// late.
//
// Rejected: lease.Run of worker/lease. It holds one piece of work, which it stops when the lease is lost, and lists it as an
// execution. This is the lease of a process: a loss stops no tool, since nobody runs a task again, and an open store would
// stand on the live page for as long as it is open.
func (s *store) live() {
	failing := false
	s.every(func() {
		err := s.renew(s.ctx, min(s.opts.Lease/3, callWait))
		if s.ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !failing:
			s.log.write(func(l *slog.Logger) {
				l.Warn("the lease cannot be renewed", "bucket", s.opts.Bucket, "replica", s.replica, "error", err)
			})
		case err == nil && failing:
			s.log.write(func(l *slog.Logger) {
				l.Info("the lease is renewed again", "bucket", s.opts.Bucket, "replica", s.replica)
			})
		}
		if failing = err != nil; failing && missing(err) { // or nobody answers at all
			call, cancel := context.WithTimeout(s.ctx, callWait)
			defer cancel()
			_, _ = s.stream(call, s.leaseStream())
		}
	})
}

// tidy removes orphans and fails the tasks of replicas that are gone, until the store is closed.
func (s *store) tidy() {
	s.every(func() {
		s.forget(s.ctx)
		s.sweep(s.ctx)
	})
}

// every calls f three times per lease until the store is closed.
func (s *store) every(f func()) {
	tick := time.NewTicker(s.opts.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-s.ctx.Done():
			return
		}
	}
}

func missing(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// renew renews the lease of this replica, and gives up after within. An error, and a renewal that shows that the lease
// may have ended before, keep the replica from judging others for one lease; see mayJudge.
func (s *store) renew(ctx context.Context, within time.Duration) error {
	call, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	sent, subject := time.Now(), s.leaseSubject(s.replica)
	// If no stream answers, PublishMsg tries twice more, which must not take longer than within.
	soon := jetstream.WithRetryWait(min(s.opts.Lease/12, jetstream.DefaultPubRetryWait))
	ack, err := s.js.PublishMsg(call, &nats.Msg{Subject: subject}, soon, jetstream.WithExpectLastSequencePerSubject(s.leased))
	lapsed := conflict(err)
	if lapsed {
		ack, err = s.js.PublishMsg(call, &nats.Msg{Subject: subject}, soon)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.since, s.swept = time.Time{}, time.Time{}
		return err
	}
	s.leased = ack.Sequence
	// The leases of other replicas may have ended, too, after an outage, after one so short that this renewal only
	// waited for its end, or if the own lease had ended, for example because this machine was suspended.
	if s.since.IsZero() || time.Since(sent) > max(s.opts.Lease/6, 500*time.Millisecond) || lapsed {
		s.since, s.swept = time.Now(), time.Time{}
	}
	s.renewed = sent
	return nil
}

// mayJudge reports whether this replica may find other replicas gone. It must have been connected for as long as a
// lease, so that replicas that were cut off by the same outage have had the time to renew their leases.
func (s *store) mayJudge() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return !s.since.IsZero() && now.Sub(s.since) >= s.opts.Lease && now.Sub(s.renewed) <= s.opts.Lease
}

// isGone reports whether a replica has no lease. If that is not certain, it reports false.
//
// A replica has its lease before its first task. So if a replica reads a task and then finds no
// lease, the lease has ended. If this replica's own lease is not there as it left it, all leases may
// have ended together, and nothing is certain.
func (s *store) isGone(ctx context.Context, replica string) bool {
	if replica == s.replica || !s.mayJudge() {
		return false
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	_, err := s.leases.GetLastMsgForSubject(call, s.leaseSubject(replica))
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return false
	}
	own, err := s.leases.GetLastMsgForSubject(call, s.leaseSubject(s.replica))
	if err != nil || !s.mayJudge() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return own.Sequence == s.leased
}

// sweepAll is how many leases pass between two sweeps of the replicas of all tasks. The other sweeps look only at
// replicas that had a lease in the last sweep, and miss a replica whose lease came and ended in between.
const sweepAll = 10

// sweep fails the tasks of replicas that are gone. It looks at the replicas that had a lease in the last sweep and,
// at times and after a start or an outage, at the replicas of all tasks.
func (s *store) sweep(ctx context.Context) {
	if !s.mayJudge() {
		return
	}
	begun := time.Now()
	s.mu.Lock()
	since, known := s.since, s.known
	all := s.swept.IsZero() || begun.Sub(s.swept) > sweepAll*s.opts.Lease
	s.mu.Unlock()
	suspects := make(map[string]bool)
	if all {
		tasks, err := s.subjects(ctx, "KV_"+s.opts.Bucket, s.subject(">"))
		if err != nil {
			return
		}
		for subject := range tasks {
			if _, id, ok := strings.Cut(s.keyIn(subject), "."); ok {
				replica, _, _ := strings.Cut(id, ".")
				suspects[replica] = true
			}
		}
	} else {
		for replica := range known {
			suspects[replica] = true
		}
	}
	// After the tasks, see isGone.
	leased, err := s.subjects(ctx, "KV_"+s.opts.Bucket+leaseSuffix, s.leaseSubject(">"))
	if err != nil {
		return
	}
	alive := make(map[string]bool, len(leased))
	for subject := range leased {
		alive[strings.TrimPrefix(subject, s.leaseSubject(""))] = true
	}
	done := true
	for replica := range suspects {
		if !alive[replica] && replica != s.replica && !s.bury(ctx, replica) {
			alive[replica], done = true, false // try again
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = alive
	if all && done && s.since.Equal(since) {
		s.swept = begun
	}
}

// bury fails the unfinished tasks of a replica, and reports whether none is left.
func (s *store) bury(ctx context.Context, replica string) bool {
	left, err := s.subjects(ctx, "KV_"+s.opts.Bucket, s.subject("*."+replica+".*"))
	if err != nil {
		return false
	}
	done := true
	for subject := range left {
		r, err := s.get(ctx, key{name: s.keyIn(subject), replica: replica}, s.isGone)
		if !unknown(err) && (err != nil || !r.Status.Final()) {
			done = false
		}
	}
	return done
}

// An orphan is a record that may or may not have been created.
type orphan struct {
	name   string
	purged bool
}

// forget purges the orphans, each of them twice: a record that was sent before the first purge may be stored after
// it.
func (s *store) forget(ctx context.Context) {
	s.mu.Lock()
	orphans := s.orphans
	s.orphans = nil
	s.mu.Unlock()
	for i, o := range orphans {
		call, cancel := context.WithTimeout(ctx, callWait)
		err := s.tasks.Purge(call, jetstream.WithPurgeSubject(s.subject(o.name)))
		cancel()
		s.mu.Lock()
		switch {
		case err != nil:
			s.orphans = append(s.orphans, orphans[i:]...)
			s.mu.Unlock()
			return
		case !o.purged:
			s.orphans = append(s.orphans, orphan{o.name, true})
		}
		s.mu.Unlock()
	}
}
