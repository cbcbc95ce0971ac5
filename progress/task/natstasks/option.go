package natstasks

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// The defaults, which apply unless an [Option] says otherwise.
const (
	DefaultBucket    = "mcp-tasks"
	DefaultLease     = 15 * time.Second
	DefaultMaxTasks  = 100_000
	DefaultMaxResult = 16 << 20
)

// An Option configures [Open]. If an option is given more than once, the last one counts.
type Option interface{ apply(*settings) }

type settings struct {
	bucket    string
	replicas  int
	lease     time.Duration
	maxTasks  int64
	maxBytes  int64
	maxResult int
	to        *slog.Logger
	log       *logger
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithBucket sets the name of the bucket of the tasks, from which those of the leases and the results
// are derived. Servers that share a bucket are replicas of one another. A name has letters, digits, -
// and _.
func WithBucket(name string) Option { return optionFunc(func(s *settings) { s.bucket = name }) }

// WithReplicas sets how many NATS servers keep each record. Defaults to 1. It applies only to a bucket
// that [Open] creates.
func WithReplicas(n int) Option { return optionFunc(func(s *settings) { s.replicas = n }) }

// WithLease sets how long a replica counts as alive after it has last renewed its lease. Defaults
// to [DefaultLease]; [Open] refuses less than 1 s. It applies only to a bucket that [Open] creates; an
// existing bucket keeps its lease.
func WithLease(d time.Duration) Option { return optionFunc(func(s *settings) { s.lease = d }) }

// WithMaxTasks sets how many tasks of all replicas together are kept, running and finished. Defaults
// to [DefaultMaxTasks]. When that many are kept, a call through this replica gets no task, and its
// client waits for the result; calls that come at the same time can exceed the number.
func WithMaxTasks(n int) Option { return optionFunc(func(s *settings) { s.maxTasks = int64(n) }) }

// WithMaxBytes sets the size limit of the bucket of tasks, and of the object store of results, in
// bytes. Without this option only the limits of the NATS server apply. Beyond seven eighths of the
// limit, a call gets no task, so that the existing tasks can end; a result that does not fit counts as
// too large. It applies only to buckets that [Open] creates.
func WithMaxBytes(n int64) Option { return optionFunc(func(s *settings) { s.maxBytes = n }) }

// WithMaxResult sets the size limit of one result in bytes. Defaults to [DefaultMaxResult]. A task
// with a larger result fails, with an error that says so.
func WithMaxResult(n int) Option { return optionFunc(func(s *settings) { s.maxResult = n }) }

// WithLogger logs to l when the lease cannot be renewed, when it can be renewed again, and when tasks
// of replicas that are gone have failed. The lease waits for l for at most 50 ms a record, and while 16 records
// are stuck, further ones are dropped. Without it, or if l is nil, nothing is logged.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(s *settings) { s.to = l }) }

var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

func newSettings(opts []Option) (settings, error) {
	s := settings{bucket: DefaultBucket, replicas: 1, lease: DefaultLease, maxTasks: DefaultMaxTasks, maxBytes: -1, maxResult: DefaultMaxResult}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.to == nil {
		s.to = slog.New(slog.DiscardHandler)
	}
	s.log = &logger{to: s.to}
	switch {
	case !bucketName.MatchString(s.bucket):
		return s, fmt.Errorf("natstasks: bucket %q: want up to 100 letters, digits, - and _", s.bucket)
	case s.replicas < 1 || s.replicas > 5:
		return s, fmt.Errorf("natstasks: %d replicas: want 1 to 5", s.replicas)
	case s.lease < time.Second:
		return s, fmt.Errorf("natstasks: a lease of %v: want 1s or more", s.lease)
	case s.maxTasks < 1:
		return s, fmt.Errorf("natstasks: at most %d tasks: want 1 or more", s.maxTasks)
	case s.maxBytes < 1 && s.maxBytes != -1:
		return s, fmt.Errorf("natstasks: at most %d bytes: want 1 or more", s.maxBytes)
	case s.maxResult < 1:
		return s, fmt.Errorf("natstasks: results of at most %d bytes: want 1 or more", s.maxResult)
	}
	return s, nil
}
