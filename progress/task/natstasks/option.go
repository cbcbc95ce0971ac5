package natstasks

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// What applies where an [Option] does not say otherwise.
const (
	DefaultBucket    = "mcp-tasks"
	DefaultLease     = 15 * time.Second
	DefaultMaxTasks  = 100_000
	DefaultMaxResult = 16 << 20
)

// An Option changes what [Open] opens. Where one is given twice, the last counts.
type Option interface{ apply(*settings) }

type settings struct {
	bucket    string
	replicas  int
	lease     time.Duration
	maxTasks  int64
	maxBytes  int64
	maxResult int
	log       *slog.Logger
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithBucket names the bucket of the tasks; those of the leases and the results are named after it.
// Servers that share a bucket are replicas of one another. A name has letters, digits, - and _.
func WithBucket(name string) Option { return optionFunc(func(s *settings) { s.bucket = name }) }

// WithReplicas is how many NATS servers keep each record, 1 unless given. It applies to what
// this [Open] makes.
func WithReplicas(n int) Option { return optionFunc(func(s *settings) { s.replicas = n }) }

// WithLease is how long a replica is taken for alive without a sign of it, [DefaultLease] unless
// given, at least a second. It applies to what this [Open] makes: the lease of a bucket that is there
// is its own.
func WithLease(d time.Duration) Option { return optionFunc(func(s *settings) { s.lease = d }) }

// WithMaxTasks bounds the tasks that are kept, running and finished, of all replicas together:
// [DefaultMaxTasks] unless given. Where there are as many, calls of this replica stay plain; calls that
// come at the same time may all be the last one.
func WithMaxTasks(n int) Option { return optionFunc(func(s *settings) { s.maxTasks = int64(n) }) }

// WithMaxBytes bounds each of the buckets of tasks and results; without it only the server's own
// limits do. Beyond seven eighths of it calls stay plain, so that what is there can end; a result for
// which there is no room is too large. It applies to what this [Open] makes.
func WithMaxBytes(n int64) Option { return optionFunc(func(s *settings) { s.maxBytes = n }) }

// WithMaxResult bounds the bytes of one result, [DefaultMaxResult] unless given. A larger one fails
// its task, with an error that says so.
func WithMaxResult(n int) Option { return optionFunc(func(s *settings) { s.maxResult = n }) }

// WithLogger logs to l when the lease cannot be renewed and when it can again, and tasks of
// replicas that are gone. Without it, or with nil, nothing is logged.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(s *settings) { s.log = l }) }

var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

func newSettings(opts []Option) (settings, error) {
	s := settings{bucket: DefaultBucket, replicas: 1, lease: DefaultLease, maxTasks: DefaultMaxTasks, maxBytes: -1, maxResult: DefaultMaxResult}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
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
