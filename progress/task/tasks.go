package task

import (
	"context"
	"time"
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
func New(opts ...Option) *Tasks { panic("not yet") }

// Shutdown aborts what runs as a task or a continuation, with [toolcall.ErrShutdown] as the cause,
// and waits until the outcomes are stored, or ctx ends; then the error says how many are not, and
// errors.Is finds the cause of ctx in it. Calls that come later stay plain. What is stored can
// still be read.
func (t *Tasks) Shutdown(ctx context.Context) error { panic("not yet") }

// Close is [Tasks.Shutdown], bounded by [toolcall.ShutdownLimit].
func (t *Tasks) Close() error { panic("not yet") }

// EndSession aborts the continuations of a session, with [toolcall.ErrSessionEnded] as the cause:
// nobody else can fetch them. Tasks run on. session is that of [Client].
func (t *Tasks) EndSession(session string) { panic("not yet") }
