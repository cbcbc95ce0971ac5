package taskjetstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// live renews the lease and looks for replicas that are gone, until the store is closed.
func (s *Store) live() {
	tick := time.NewTicker(s.lease / 3)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		err := s.renew(s.ctx)
		if s.ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !failing:
			s.log.Warn("the lease cannot be renewed", "bucket", s.bucket, "replica", s.replica, "error", err)
		case err == nil && failing:
			s.log.Info("the lease is renewed again", "bucket", s.bucket, "replica", s.replica)
		}
		if failing = err != nil; failing {
			if missing(err) { // or nobody answers at all
				call, cancel := context.WithTimeout(s.ctx, callWait)
				_, _, _ = s.streams(call)
				cancel()
			}
			continue
		}
		s.forget(s.ctx)
		s.sweep(s.ctx)
	}
}

func missing(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// renew renews the lease, and keeps account of how that goes.
func (s *Store) renew(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, min(s.lease/3, callWait))
	defer cancel()
	sent := time.Now()
	_, err := s.js.PublishMsg(call, &nats.Msg{Subject: s.leaseSubject(s.replica)})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.since, s.swept = time.Time{}, false
		return err
	}
	// An outage, one that was so short that the renewal has only waited for its end, or this process
	// was suspended.
	if s.since.IsZero() || time.Since(sent) > max(s.lease/6, 500*time.Millisecond) || sent.Sub(s.renewed) > s.lease {
		s.since, s.swept = time.Now(), false
	}
	s.renewed = sent
	return nil
}

// settled reports whether this replica may judge others: it has been connected for as long as a
// lease, so those that were cut off by the same outage have had the time to renew theirs.
func (s *Store) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return !s.since.IsZero() && now.Sub(s.since) >= s.lease && now.Sub(s.renewed) <= s.lease
}

// gone reports whether a replica has no lease. What is not known for certain is no.
//
// A replica has its lease before its first task. So whoever has read a task, and then finds no
// lease, knows that it has ended since.
func (s *Store) gone(ctx context.Context, replica string) bool {
	if replica == s.replica || !s.settled() {
		return false
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	_, err := s.leases.GetLastMsgForSubject(call, s.leaseSubject(replica))
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

// sweep fails the tasks of replicas that are gone: of those that had a lease the last time and
// have none now, and after a start or an outage of all.
func (s *Store) sweep(ctx context.Context) {
	if !s.settled() {
		return
	}
	s.mu.Lock()
	swept, known := s.swept, s.known
	s.mu.Unlock()
	suspects := make(map[string]bool)
	if swept {
		for replica := range known {
			suspects[replica] = true
		}
	} else {
		all, err := s.subjects(ctx, "KV_"+s.bucket, s.subject(">"))
		if err != nil {
			return
		}
		for subject := range all {
			if _, id, ok := strings.Cut(s.keyIn(subject), "."); ok {
				replica, _, _ := strings.Cut(id, ".")
				suspects[replica] = true
			}
		}
	}
	// After the tasks, see gone.
	leased, err := s.subjects(ctx, "KV_"+s.bucket+leaseSuffix, s.leaseSubject(">"))
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
	if !s.since.IsZero() {
		s.swept = s.swept || done
	}
}

// bury fails what a replica has left unfinished.
func (s *Store) bury(ctx context.Context, replica string) bool {
	left, err := s.subjects(ctx, "KV_"+s.bucket, s.subject("*."+replica+".*"))
	if err != nil {
		return false
	}
	done := true
	for subject := range left {
		k := key{name: s.keyIn(subject), replica: replica}
		if _, err := s.get(ctx, k, s.gone); err != nil && !unknown(err) {
			done = false
		}
	}
	return done
}

// forget removes records of which it was not known whether they were created.
func (s *Store) forget(ctx context.Context) {
	s.mu.Lock()
	orphans := s.orphans
	s.orphans = nil
	s.mu.Unlock()
	for i, name := range orphans {
		call, cancel := context.WithTimeout(ctx, callWait)
		err := s.tasks.Purge(call, jetstream.WithPurgeSubject(s.subject(name)))
		cancel()
		if err != nil {
			s.mu.Lock()
			s.orphans = append(s.orphans, orphans[i:]...)
			s.mu.Unlock()
			return
		}
	}
}
