package task

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// What applies where an [Option] does not say otherwise.
const (
	DefaultPoll       = time.Second
	DefaultRetention  = 10 * time.Minute
	DefaultMaxRunning = 100
)

// Tasks are the tasks and continuations of a process: one for all its servers and sessions,
// since a client may ask for a task on another connection than the one it was given it on. It is
// safe for concurrent use.
type Tasks struct {
	store      Store
	poll       time.Duration
	retention  time.Duration
	maxRunning int64
	permits    *semaphore.Weighted
	ctx        context.Context // ends when a Shutdown has given up
	giveUp     context.CancelFunc

	mu        sync.Mutex
	live      map[string]*Run   // what runs here and has a handle, by id
	handing   map[*Run]struct{} // what runs here and whose handle is being stored
	closed    bool
	idle      chan struct{} // made by Shutdown, closed when neither has any
	continued continued
}

// An Option changes what [New] returns. Where one is given twice, the last counts.
type Option interface{ apply(*Tasks) }

type optionFunc func(*Tasks)

func (f optionFunc) apply(t *Tasks) { f(t) }

// WithStore keeps the tasks in s in place of a zero [Memory].
func WithStore(s Store) Option { return optionFunc(func(t *Tasks) { t.store = s }) }

// WithPoll is how often clients are asked to poll, and the shortest time between two changes of
// a task's status message; 0 or less is [DefaultPoll].
func WithPoll(d time.Duration) Option { return optionFunc(func(t *Tasks) { t.poll = d }) }

// WithRetention is for how long a task can be read after its end; 0 or less is
// [DefaultRetention].
func WithRetention(d time.Duration) Option { return optionFunc(func(t *Tasks) { t.retention = d }) }

// WithMaxRunning is how many calls may run on as a task or a continuation at the same time;
// beyond it calls are answered with their result alone, as without tasks. 0 or less is
// [DefaultMaxRunning].
func WithMaxRunning(n int) Option { return optionFunc(func(t *Tasks) { t.maxRunning = int64(n) }) }

// New returns tasks that are kept in memory unless [WithStore] is given. It starts nothing.
func New(opts ...Option) *Tasks {
	t := &Tasks{live: make(map[string]*Run), handing: make(map[*Run]struct{})}
	for _, o := range opts {
		if o != nil {
			o.apply(t)
		}
	}
	if t.store == nil {
		t.store = new(Memory)
	}
	if t.poll <= 0 {
		t.poll = DefaultPoll
	}
	if t.retention <= 0 {
		t.retention = DefaultRetention
	}
	if t.maxRunning <= 0 {
		t.maxRunning = DefaultMaxRunning
	}
	t.permits = semaphore.NewWeighted(t.maxRunning)
	t.ctx, t.giveUp = context.WithCancel(context.Background())
	return t
}

// Shutdown aborts what runs as a task or a continuation, with [toolcall.ErrShutdown] as the cause,
// and waits until the outcomes are stored, or ctx ends; then the error says how many are not, and
// errors.Is finds the cause of ctx in it, and those that the store does not take at once when they
// come are given up. Calls that come later stay plain. What is stored can still be read.
func (t *Tasks) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	if t.idle == nil {
		t.idle = make(chan struct{})
		t.settle()
	}
	idle := t.idle
	for _, r := range t.live {
		r.cancel(toolcall.ErrShutdown)
	}
	t.mu.Unlock()

	select {
	case <-idle:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	open := len(t.live) + len(t.handing)
	if open == 0 {
		return nil // also where ctx has ended at the same time
	}
	t.giveUp()
	return fmt.Errorf("task: outcomes that are not stored: %d: %w", open, context.Cause(ctx))
}

// Close is [Tasks.Shutdown], bounded by [toolcall.ShutdownLimit].
func (t *Tasks) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	return t.Shutdown(ctx)
}

// EndSession aborts the continuations of a session, with [toolcall.ErrSessionEnded] as the cause:
// nobody else can fetch them. Tasks run on. session is that of [Client]; "" is none.
func (t *Tasks) EndSession(session string) {
	if session == "" {
		return
	}
	owner := (&Client{Session: session}).owner(Continued)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.live {
		if r.owner == owner {
			r.cancel(toolcall.ErrSessionEnded)
		}
	}
	for r := range t.handing {
		if r.owner == owner {
			r.cancel(toolcall.ErrSessionEnded)
		}
	}
}

// begin makes r known before its handle is stored: a Shutdown that comes meanwhile waits for it,
// and an EndSession finds it. It reports false where the tasks have been shut down. What follows is
// add or abandon.
func (t *Tasks) begin(r *Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.handing[r] = struct{}{}
	return true
}

// abandon is for a run that stays plain, and gives back what it holds.
func (t *Tasks) abandon(r *Run) {
	t.permits.Release(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.handing, r)
	t.settle()
}

// add makes r known by the id that the store has given it. It reports false where the tasks have
// been shut down meanwhile.
func (t *Tasks) add(r *Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.handing, r)
	t.live[r.id] = r
	if r.form == Continued {
		t.continued.add(r.id, r.owner)
	}
	return !t.closed
}

func (t *Tasks) drop(r *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, r.id)
	t.settle()
}

// settle closes idle when nothing is live or on its way there. The caller has the lock.
func (t *Tasks) settle() {
	if t.idle != nil && len(t.live)+len(t.handing) == 0 {
		select {
		case <-t.idle:
		default:
			close(t.idle)
		}
	}
}

// here returns the run of a task, or nil where it runs elsewhere or no more.
func (t *Tasks) here(owner, id string) *Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.live[id]; r != nil && r.owner == owner {
		return r
	}
	return nil
}

// change applies f to a record until what it makes of it is stored, or f reports that there is
// nothing to change.
func (t *Tasks) change(ctx context.Context, owner, id string, f func(*Record) bool) (Record, error) {
	for {
		r, err := t.store.Get(ctx, owner, id)
		if err != nil || !f(&r) {
			return r, err
		}
		stored, err := t.store.Update(ctx, r)
		if !isConflict(err) {
			return stored, err
		}
	}
}
