package natstasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// bind finds or creates the buckets, and returns an error if their settings would lose tasks. An error names the
// request that failed, because the server does not answer a request without permission, and the timeout alone does not
// show it.
func (s *store) bind(ctx context.Context) error {
	account, err := s.js.AccountInfo(ctx)
	if err != nil {
		return fmt.Errorf("asking for the account: %w", err)
	}
	if account.API.Level < 1 {
		return errors.New("the server is too old: records that expire need NATS 2.11")
	}
	if s.tasks, err = s.stream(ctx, s.taskStream()); err != nil {
		return err
	}
	if s.leases, err = s.stream(ctx, s.leaseStream()); err != nil {
		return err
	}
	c := s.tasks.CachedInfo().Config
	if !c.AllowMsgTTL || c.MaxMsgsPerSubject != 1 || c.AllowDirect || c.MaxAge != 0 || c.Discard != jetstream.DiscardNew || c.DenyPurge {
		return fmt.Errorf("there is a stream %s that was made by something else: want allow_msg_ttl, max_msgs_per_subject 1, discard new, and no allow_direct, max_age or deny_purge", c.Name)
	}
	c = s.leases.CachedInfo().Config
	if c.MaxAge < time.Second || c.MaxMsgsPerSubject != 1 || c.AllowDirect || c.DenyPurge {
		return fmt.Errorf("there is a stream %s that was made by something else: want a max_age of 1s or more, max_msgs_per_subject 1, and no allow_direct or deny_purge", c.Name)
	}
	results, err := s.js.Stream(ctx, "OBJ_"+s.opts.Bucket+resultSuffix)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound): // objects creates it for the first large result
	case err != nil:
		return err
	case results.CachedInfo().Config.MaxAge == 0:
		return fmt.Errorf("there is a stream %s that was made by something else: want a max_age", results.CachedInfo().Config.Name)
	}
	s.opts.Lease = c.MaxAge
	s.kv, err = s.js.KeyValue(ctx, s.opts.Bucket)
	return err
}

// bucketStream returns the configuration of the stream of a bucket.
func (s *store) bucketStream(bucket, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + bucket, Subjects: []string{"$KV." + bucket + ".>"}, Description: description,
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1, Discard: jetstream.DiscardNew,
		// Leases are stored in files too, because a bucket in memory is lost when the server restarts.
		Storage: jetstream.FileStorage, Replicas: s.opts.Replicas, AllowRollup: true, DenyDelete: true,
		// A server that has not received the newest change yet may answer a direct read. A client may
		// contact another replica before that.
		AllowDirect: false,
	}
}

func (s *store) taskStream() jetstream.StreamConfig {
	c := s.bucketStream(s.opts.Bucket, "tasks of MCP servers")
	c.AllowMsgTTL, c.Duplicates, c.MaxBytes = true, 2*time.Minute, s.opts.MaxBytes
	return c
}

func (s *store) leaseStream() jetstream.StreamConfig {
	c := s.bucketStream(s.opts.Bucket+leaseSuffix, "leases of the replicas of MCP servers")
	c.MaxAge, c.Duplicates = s.opts.Lease, min(s.opts.Lease, 2*time.Minute)
	return c
}

// stream binds to a stream, or creates it. It does not update an existing stream: each replica would overwrite the
// settings of the others.
func (s *store) stream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	doing := "asking for"
	st, err := s.js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		doing = "making"
		st, err = s.js.CreateStream(ctx, c)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
		st, err = s.js.Stream(ctx, c.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s stream %s: %w", doing, c.Name, err)
	}
	return st, nil
}

// subjects returns the subjects of a stream that match a filter, with the number of their messages, which is at least
// 1.
func (s *store) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	st, err := s.js.Stream(call, stream) // not s.tasks or s.leases, since Info changes the Stream
	if err != nil {
		return nil, err
	}
	info, err := st.Info(call, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
