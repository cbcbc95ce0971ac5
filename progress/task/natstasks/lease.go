package natstasks

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// live renews the lease until the store is closed. It does nothing else that could make a renewal late.
//
// lease.Run of worker/lease is for the lease of one piece of work, which it stops when the lease is lost, and shows as
// an execution. The lease of a store belongs to a process: its loss stops no tool, and an open store is not an
// execution.
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
		if failing = err != nil; failing && missing(err) { // the bucket may have been deleted
			call, cancel := context.WithTimeout(s.ctx, callWait)
			defer cancel()
			_, _ = s.stream(call, s.leaseStream())
		}
	})
}

// tidy removes orphans, and marks the tasks of replicas that are gone as failed, until the store is closed.
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

// renew renews the lease of this replica, and gives up after within. After an error, or a renewal that shows that the
// lease may have ended before, this replica judges no others until a lease has passed; see mayJudge.
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
	// The leases of other replicas may have ended as well: after an outage, which failed a renewal or only delayed
	// this one, or if the own lease had ended, for example because this machine was suspended.
	if s.since.IsZero() || time.Since(sent) > max(s.opts.Lease/6, 500*time.Millisecond) || lapsed {
		s.since, s.swept = time.Now(), time.Time{}
	}
	s.renewed = sent
	return nil
}

// mayJudge reports whether this replica may decide that other replicas are gone. It must have been connected for as
// long as a lease, so that replicas that the same outage cut off have had time to renew their leases.
func (s *store) mayJudge() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return !s.since.IsZero() && now.Sub(s.since) >= s.opts.Lease && now.Sub(s.renewed) <= s.opts.Lease
}

// isGone reports whether the lease of a replica has ended. It returns false if that is not certain. Read a task of the
// replica first: a replica has its lease before its first task, so a lease that is missing after that read has ended.
// If this replica's own lease is missing too, or was replaced, all leases may have been lost together, and isGone
// returns false.
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

// sweepAll is the time, in leases, between two sweeps that check the replicas of all tasks. The other sweeps check only
// the replicas that had a lease in the last sweep, and miss a replica whose lease began and ended in between.
const sweepAll = 10

// sweep marks the tasks of replicas that are gone as failed. It checks the replicas that had a lease in the last sweep
// or, after a start or an outage and every sweepAll leases, the replicas of all tasks.
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
	// The leases must be read after the tasks; see isGone.
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
			alive[replica], done = true, false // the next sweep checks the replica again
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = alive
	if all && done && s.since.Equal(since) {
		s.swept = begun
	}
}

// bury marks the unfinished tasks of a replica as failed if the replica is gone. It reports whether the replica has no
// unfinished task any more, and returns false if the tasks cannot be listed or read.
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

// maxOrphans is the largest number of orphans. Two rounds of forget, of one short request for each, remove them. If no
// request succeeds, no more tasks could be stored either.
const maxOrphans = 1000

// forget purges the orphans, the records that may have been stored by a Create that returned an error. Two calls purge
// each orphan, because the server may store a record that was sent earlier after the first purge.
func (s *store) forget(ctx context.Context) {
	s.mu.Lock()
	orphans := maps.Clone(s.orphans)
	s.mu.Unlock()
	for name, purged := range orphans {
		call, cancel := context.WithTimeout(ctx, callWait)
		err := s.tasks.Purge(call, jetstream.WithPurgeSubject(s.subject(name)))
		cancel()
		if err != nil {
			return
		}
		s.mu.Lock()
		if purged {
			delete(s.orphans, name)
		} else {
			s.orphans[name] = true
		}
		s.mu.Unlock()
	}
}
