package natstasks

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

const (
	// inline is the largest size of an answer that is stored in its record. Every change of a record sends its answer
	// again, and every listing reads it.
	inline = 256 << 10
	// maxResult is the largest size of an answer as JSON. A task with a larger one fails.
	maxResult = 16 << 20
	// objectWait bounds the transfer of an object.
	objectWait = 30 * time.Second
)

// moveAnswer moves an answer that is too large for the record to a new object, and sets r.Object. The error is
// task.ErrTooLarge if the answer exceeds maxResult or the object store is full.
func (s *store) moveAnswer(ctx context.Context, k key, r *stored) error {
	a := r.Answer
	if a == nil || len(a.Result) <= inline && (a.Error == nil || len(a.Error.Message)+len(a.Error.Data) <= inline) {
		return nil
	}
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("natstasks: %w", err)
	}
	if len(body) > maxResult {
		return task.ErrTooLarge
	}
	call, cancel := context.WithTimeout(ctx, objectWait)
	defer cancel()
	objects, err := s.objects(call, r.Retention)
	if err != nil {
		return fmt.Errorf("natstasks: bucket %q: %w", s.opts.Bucket+resultSuffix, err)
	}
	if s.conn.IsClosed() { // nats.go would leave a goroutine behind, which waits for the connection for ever
		return fmt.Errorf("natstasks: bucket %q: %w", s.opts.Bucket+resultSuffix, nats.ErrConnectionClosed)
	}
	// The name is unique, because the loser of a race for the end of a task must not overwrite the result of the
	// winner.
	name := k.name + "." + rand.Text()
	if _, err := objects.PutBytes(call, name, body); err != nil {
		if api := (*jetstream.APIError)(nil); errors.As(err, &api) && noRoom(api) {
			return task.ErrTooLarge
		}
		return fmt.Errorf("natstasks: bucket %q: %w", s.opts.Bucket+resultSuffix, err)
	}
	r.Object, r.Answer = name, nil
	return nil
}

// dropAnswer removes an object that no record refers to; "" means that there is none. If the removal fails, the object
// expires.
func (s *store) dropAnswer(ctx context.Context, name string) {
	if name == "" {
		return
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	if objects, err := s.objects(call, 0); err == nil {
		_ = objects.Delete(call, name)
	}
}

// withAnswer returns a record with its answer, which it reads from the object store if necessary. The error is
// task.ErrUnknown if the record has expired meanwhile.
func (s *store) withAnswer(ctx context.Context, r stored) (task.Record, error) {
	if r.Object == "" {
		return r.Record, nil
	}
	call, cancel := context.WithTimeout(ctx, objectWait)
	defer cancel()
	objects, err := s.objects(call, 0)
	var body []byte
	if err == nil {
		body, err = objects.GetBytes(call, r.Object)
	}
	switch {
	case ctx.Err() != nil:
		return task.Record{}, context.Cause(ctx)
	case expired(&r.Record):
		return task.Record{}, task.ErrUnknown
	case err != nil:
		return task.Record{}, fmt.Errorf("natstasks: bucket %q: %w", s.opts.Bucket+resultSuffix, err)
	}
	if err := json.Unmarshal(body, &r.Answer); err != nil {
		return task.Record{}, fmt.Errorf("natstasks: object %s: %w", r.Object, err)
	}
	return r.Record, nil
}

// objects returns the object store. An object that is stored now is kept for at least retention; 0 means that the
// caller stores none. Objects have no time to live of their own, so objects extends the age limit of the bucket if
// necessary.
func (s *store) objects(ctx context.Context, retention time.Duration) (jetstream.ObjectStore, error) {
	need := retention + s.opts.Lease // the retention begins after the object is stored
	s.mu.Lock()
	objects, kept := s.results, s.kept
	s.mu.Unlock()
	if objects != nil && (retention == 0 || need <= kept) {
		return objects, nil
	}
	bucket := s.opts.Bucket + resultSuffix
	c := jetstream.ObjectStoreConfig{
		Bucket: bucket, Description: "large results of tasks of MCP servers", TTL: need,
		Replicas: s.opts.Replicas, MaxBytes: s.opts.MaxBytes,
	}
	_, err := s.js.ObjectStore(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = s.js.CreateObjectStore(ctx, c)
		if errors.Is(err, jetstream.ErrBucketExists) {
			err = nil // another replica was faster
		}
	}
	if err != nil {
		return nil, err
	}
	st, err := s.js.Stream(ctx, "OBJ_"+bucket)
	if err != nil {
		return nil, err
	}
	config := st.CachedInfo().Config
	if config.AllowDirect || config.MaxAge < need {
		config.AllowDirect = false // see bind
		config.MaxAge = max(config.MaxAge, need)
		if _, err := s.js.UpdateStream(ctx, config); err != nil {
			return nil, err
		}
	}
	if objects, err = s.js.ObjectStore(ctx, bucket); err != nil { // again, to use the updated settings
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results, s.kept = objects, config.MaxAge
	return objects, nil
}
