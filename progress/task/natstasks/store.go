package natstasks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// callWait bounds one request to the server. If the answer was lost with a connection, the request would otherwise
// wait until the caller's context ends.
const callWait = 5 * time.Second

// A Store is the [task.Store] of one replica. Create prefixes the ID with the name of the replica; the ID must have 1
// to 128 letters, digits, - and _. List leaves out the answers in the object store. A Store is safe for concurrent use.
type Store struct {
	task.Store
	inner *store
}

// Close gives up the lease and ends the goroutines of the store. Close the [task.Tasks]
// of the store first, because the other replicas mark a task that still runs as failed. Waits in progress
// and later calls of methods may return errors. Close may be called more than once. It returns an error if
// the lease was not given up, and so will expire.
func (s *Store) Close() error { return s.inner.close() }

// A store implements Store. Its fields and other methods are not part of the API.
type store struct {
	opts    Options
	log     logger
	js      jetstream.JetStream
	conn    *nats.Conn
	replica string // a random name, new for each Open

	// These are for reads only. Stream.Info is not safe for concurrent use; see subjects.
	tasks, leases jetstream.Stream
	kv            jetstream.KeyValue

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup // the goroutines for which Close waits

	mu       sync.Mutex                // guards the fields below
	leased   uint64                    // the revision of the lease
	renewed  time.Time                 // when the newest successful renewal of the lease was sent
	since    time.Time                 // no renewal has failed or been late since then; zero after a failure
	swept    time.Time                 // when the last sweep of all tasks began; zero if none has since the last outage
	known    map[string]bool           // the replicas that had a lease in the last sweep
	orphans  map[string]bool           // by the name of the key, whether forget has purged it once; see maxOrphans
	bells    map[string]map[*bell]bool // the bells of Waits for tasks of this replica, by the name of the key
	watching bool                      // watchOwn runs
	listings map[string]listing        // by the prefix of an owner's subjects
	results  jetstream.ObjectStore     // nil until the first use
	kept     time.Duration             // how long results keeps an object
}

// Open opens the store as a new replica. It creates the buckets of tasks and leases if they do not exist,
// and renews the lease of the replica until [Store.Close] is called. ctx bounds only Open itself. The
// caller remains responsible for js and its connection, and closes the connection after the store.
//
// If a field of opts is not valid, the error wraps a [*timeout.ConfigError]. Open also returns an error if the server
// cannot be reached or is too old, or if an existing bucket has settings that would lose tasks.
func Open(ctx context.Context, js jetstream.JetStream, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &store{
		opts: opts, log: logger{to: opts.Logger}, js: js, conn: js.Conn(), replica: strings.ToLower(rand.Text()[:16]),
		known: make(map[string]bool), orphans: make(map[string]bool), bells: make(map[string]map[*bell]bool), listings: make(map[string]listing),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.bind(ctx); err != nil {
		return nil, fmt.Errorf("natstasks: bucket %q: %w", s.opts.Bucket, err)
	}
	if err := s.renew(ctx, callWait); err != nil {
		return nil, fmt.Errorf("natstasks: lease in bucket %q: %w", s.opts.Bucket+leaseSuffix, err)
	}
	s.done.Go(s.live)
	s.done.Go(s.tidy)
	return &Store{Store: s, inner: s}, nil
}

func (s *store) close() error {
	s.mu.Lock()
	s.cancel() // with mu held, so that start and listen add nothing to done from now on
	s.mu.Unlock()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), callWait)
	defer cancel()
	if err := s.leases.Purge(ctx, jetstream.WithPurgeSubject(s.leaseSubject(s.replica))); err != nil {
		return fmt.Errorf("natstasks: the lease was not given up, and will expire: %w", err)
	}
	return nil
}

// A stored is a record as the bucket holds it.
type stored struct {
	task.Record
	// Object is the name of the object with the answer, or "" if the answer is in the record.
	Object string `json:"object,omitempty"`
}

func (s *store) Create(ctx context.Context, r task.Record) (task.Record, error) {
	r.ID = s.replica + "." + r.ID
	k, ok := keyOf(r.Owner, r.ID)
	if !ok {
		return task.Record{}, fmt.Errorf("natstasks: id %q: want letters, digits, - and _", r.ID)
	}
	if s.ctx.Err() != nil { // without a lease, other replicas would mark the task as failed
		return task.Record{}, errClosed
	}
	if full, err := s.full(ctx); err != nil || full {
		return task.Record{}, cmp.Or(err, task.ErrFull)
	}
	out, err := s.put(ctx, k, r, 0)
	switch {
	case err == nil, errors.Is(err, task.ErrConflict), errors.Is(err, task.ErrTooLarge):
	case errors.Is(err, errNoRoom):
		err = task.ErrFull
	default:
		// The record may have been stored in spite of the error, and no replica would ever end its task.
		s.mu.Lock()
		s.orphans[k.name] = false
		s.mu.Unlock()
	}
	return out, err
}

// full reports whether there is no room for another task, or for another orphan. It leaves an eighth of the bytes free
// for the running tasks: a replicated server that has reached a bound refuses even to replace a message, and they could
// not store their outcomes. Orphans are counted only once the stream is there: without one they could not be purged.
func (s *store) full(ctx context.Context) (bool, error) {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	st, err := s.stream(call, s.taskStream()) // creates the stream again if it was deleted
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, fmt.Errorf("natstasks: %w", err)
	}
	s.mu.Lock()
	orphans := len(s.orphans)
	s.mu.Unlock()
	info := st.CachedInfo()
	most := info.Config.MaxBytes
	return orphans >= maxOrphans || info.State.Msgs >= uint64(s.opts.MaxTasks) || most > 0 && info.State.Bytes > uint64(most-most/8), nil
}

// Get returns the record of the owner's task with this id; see [task.Store].
func (s *store) Get(ctx context.Context, owner, id string) (task.Record, error) {
	k, ok := keyOf(owner, id)
	if !ok {
		return task.Record{}, task.ErrUnknown
	}
	r, err := s.get(ctx, k, s.isGone)
	if err != nil {
		return task.Record{}, err
	}
	return s.withAnswer(ctx, r)
}

// Update replaces the stored record if its revision is that of r; see [task.Store].
func (s *store) Update(ctx context.Context, r task.Record) (task.Record, error) {
	k, ok := keyOf(r.Owner, r.ID)
	if !ok || expired(&r) {
		return task.Record{}, task.ErrUnknown
	}
	out, err := s.put(ctx, k, r, r.Revision)
	switch {
	case errors.Is(err, errNoRoom):
		err = task.ErrTooLarge
	case errors.Is(err, task.ErrConflict):
		// The server returns the same error for a key that does not exist.
		if _, e := s.load(ctx, k); errors.Is(e, task.ErrUnknown) {
			err = e
		}
	}
	return out, err
}

// get loads a record. If the task is unfinished and gone returns true for its replica, get first marks the task as
// failed, and returns that record.
func (s *store) get(ctx context.Context, k key, gone func(ctx context.Context, replica string) bool) (stored, error) {
	for {
		r, err := s.load(ctx, k)
		if err != nil || r.Status.Final() || !gone(ctx, k.replica) {
			return r, err
		}
		lost, err := s.put(ctx, k, r.Lost(time.Now()), r.Revision)
		switch {
		case err == nil:
			s.log.write(func(l *slog.Logger) {
				l.Warn("a task was lost: its replica is gone", "task", r.ID, "tool", r.Tool, "replica", k.replica)
			})
			return stored{Record: lost}, nil
		case !errors.Is(err, task.ErrConflict):
			return stored{}, err
		}
		// Another replica was faster, or the task ended just before its replica did. Load the record again.
	}
}

// load reads a record, without an answer that is stored as an object. The error is task.ErrUnknown if there is no such
// record or it has expired.
func (s *store) load(ctx context.Context, k key) (stored, error) {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	m, err := s.tasks.GetLastMsgForSubject(call, s.subject(k.name))
	switch {
	case ctx.Err() != nil:
		return stored{}, context.Cause(ctx)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return stored{}, task.ErrUnknown
	case err != nil:
		return stored{}, fmt.Errorf("natstasks: %w", err)
	}
	var r stored
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return stored{}, fmt.Errorf("natstasks: record %s: %w", k.name, err)
	}
	if expired(&r.Record) {
		return stored{}, task.ErrUnknown
	}
	r.Revision = m.Sequence
	return r, nil
}

// Error codes of JetStream. Not all have names in package jetstream, and a conflict has two codes.
const (
	codeConflict           = jetstream.JSErrCodeStreamWrongLastSequence
	codeConflictReplicated = 10164
	codeStoreFailed        = 10077 // one of its causes is that MaxMsgs or MaxBytes is reached; see noRoom
	codeTooLarge           = 10054 // the message exceeds MaxMsgSize
)

// errNoRoom is the error of put if a bound of the bucket is reached. Its callers return ErrFull or ErrTooLarge instead.
var errNoRoom = errors.New("natstasks: the bucket is full")

// headerRoom is an upper bound, in bytes, for the headers and the rest of a publication beside its data.
const headerRoom = 1 << 10

// put stores r in place of the given revision of the record, where 0 means that there is no record yet, and returns it
// with its new revision. The error is task.ErrConflict if the record has another revision, and task.ErrTooLarge or
// errNoRoom if r does not fit. After any other error r may have been stored.
func (s *store) put(ctx context.Context, k key, r task.Record, revision uint64) (task.Record, error) {
	if ctx.Err() != nil {
		return task.Record{}, context.Cause(ctx)
	}
	in := stored{Record: r}
	if err := s.moveAnswer(ctx, k, &in); err != nil {
		return task.Record{}, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return task.Record{}, fmt.Errorf("natstasks: %w", err)
	}
	if int64(len(body)) > s.conn.MaxPayload()-headerRoom {
		s.dropAnswer(ctx, in.Object)
		return task.Record{}, task.ErrTooLarge
	}
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(revision)}
	if r.Status.Final() {
		opts = append(opts, jetstream.WithMsgTTL(ttl(time.Until(r.Expires))))
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	ack, err := s.js.PublishMsg(call, &nats.Msg{Subject: s.subject(k.name), Data: body}, opts...)
	if err == nil {
		r.Revision = ack.Sequence
		return r, nil
	}
	if ctx.Err() != nil {
		return task.Record{}, context.Cause(ctx)
	}
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		switch {
		case conflict(err):
			err = task.ErrConflict
		case api.ErrorCode == codeTooLarge:
			err = task.ErrTooLarge
		case noRoom(api):
			err = errNoRoom
		}
		s.dropAnswer(ctx, in.Object) // the server has not stored a record that refers to the object
		if err != api {
			return task.Record{}, err
		}
	}
	return task.Record{}, fmt.Errorf("natstasks: %w", err)
}

func conflict(err error) bool {
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && (api.ErrorCode == codeConflict || api.ErrorCode == codeConflictReplicated)
}

func noRoom(e *jetstream.APIError) bool {
	return e.ErrorCode == codeStoreFailed && strings.Contains(e.Description, "maximum")
}

// ttl returns d as a time to live that the server accepts: rounded up to whole seconds, and at least one.
func ttl(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}

// expired reports whether a final record has expired by the clock of this process. The server may remove it up to a
// second later.
func expired(r *task.Record) bool {
	return r.Status.Final() && !r.Expires.IsZero() && !time.Now().Before(r.Expires)
}
