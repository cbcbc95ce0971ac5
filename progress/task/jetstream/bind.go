package taskjetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// bind finds the buckets, or makes them.
func (s *Store) bind(ctx context.Context) error {
	account, err := s.js.AccountInfo(ctx)
	if err != nil {
		return err
	}
	if account.API.Level < 1 {
		return errors.New("the server is too old: records that expire need NATS 2.11")
	}
	if s.tasks, s.leases, err = s.streams(ctx); err != nil {
		return err
	}
	if c := s.tasks.CachedInfo().Config; !c.AllowMsgTTL || c.MaxMsgsPerSubject != 1 || c.AllowDirect {
		return fmt.Errorf("there is a stream %s that was made by something else: want allow_msg_ttl, max_msgs_per_subject 1 and no allow_direct", c.Name)
	}
	c := s.leases.CachedInfo().Config
	if c.MaxAge < time.Second || c.MaxMsgsPerSubject != 1 {
		return fmt.Errorf("there is a stream %s that was made by something else: want a max_age of 1s or more, and max_msgs_per_subject 1", c.Name)
	}
	s.lease = c.MaxAge
	s.kv, err = s.js.KeyValue(ctx, s.bucket)
	return err
}

// streams binds the streams of the buckets, or makes them.
func (s *Store) streams(ctx context.Context) (_, _ jetstream.Stream, err error) {
	base := jetstream.StreamConfig{
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1, Discard: jetstream.DiscardNew,
		Storage: jetstream.FileStorage, Replicas: s.replicas, AllowRollup: true, DenyDelete: true,
		// A direct read may be answered by a server that is behind, and a client may go from one
		// replica to the next faster than that catches up.
		AllowDirect: false,
	}
	tasks := base
	tasks.Name, tasks.Subjects, tasks.Description = "KV_"+s.bucket, []string{s.subject(">")}, "tasks of MCP servers"
	tasks.AllowMsgTTL, tasks.Duplicates, tasks.MaxMsgs, tasks.MaxBytes = true, 2*time.Minute, s.maxTasks, s.maxBytes
	leases := base
	// In files too: a bucket in memory is gone when the server is restarted.
	leases.Name, leases.Subjects, leases.Description = "KV_"+s.bucket+leaseSuffix, []string{s.leaseSubject(">")}, "leases of the replicas of MCP servers"
	leases.MaxAge, leases.Duplicates = s.lease, min(s.lease, 2*time.Minute)

	t, err := s.stream(ctx, tasks)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.stream(ctx, leases)
	return t, l, err
}

// stream binds a stream as it is, or makes it. Were it updated instead, each replica would
// overwrite the settings of all others with its own.
func (s *Store) stream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	st, err := s.js.Stream(ctx, c.Name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return st, err
	}
	st, err = s.js.CreateStream(ctx, c)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
		return s.js.Stream(ctx, c.Name)
	}
	return st, err
}

// subjects returns the subjects of a stream that match a filter and have a message.
func (s *Store) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	st, err := s.js.Stream(call, stream) // a handle of its own, since Info changes it
	if err != nil {
		return nil, err
	}
	info, err := st.Info(call, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
