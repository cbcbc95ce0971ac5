package natstasks

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The defaults of the fields of Options.
const (
	defaultBucket   = "mcp-tasks"
	defaultLease    = 15 * time.Second
	defaultMaxTasks = 100_000
)

// Options are the settings of [Open]. The zero Options mean the defaults. Replicas, Lease and MaxBytes
// apply only to buckets that the [Store] creates; an existing bucket keeps its settings, except that the
// Store turns off direct reads of the results, and lengthens their age limit if a task is kept for longer.
type Options struct {
	// Bucket is the name of the bucket of the tasks. The names of the buckets of leases and results begin
	// with this name. Processes that share a bucket are replicas of one another. A name has up to 100
	// letters, digits, - and _. "" means mcp-tasks.
	Bucket string
	// Replicas is the number of NATS servers that keep each record, from 1 to 5. 0 means 1.
	Replicas int
	// Lease is how long a replica counts as alive after it has renewed its lease, at least 1 s. 0 means
	// 15 s.
	Lease time.Duration
	// MaxTasks is the largest number of tasks of all replicas together, running and finished. At that
	// number a call through this replica does not become a task, and its client waits for the result.
	// Simultaneous calls can exceed the number. 0 means 100 000; Open refuses a negative number.
	MaxTasks int
	// MaxBytes is the size limit of the bucket of tasks in bytes, and also that of the object store of
	// results. While the bucket of tasks is larger than seven eighths of MaxBytes, a call does not become a
	// task, so that existing tasks can store their outcomes. A task whose result does not fit fails, as with
	// one above 16 MiB. 0 means that only the limits of the NATS server apply; Open refuses a negative
	// number.
	MaxBytes int64
	// Logger gets a record when the lease cannot be renewed, when it can be renewed again, and for each task
	// that this replica marks as failed because the task's replica is gone. A record delays the renewal of
	// the lease by at most 50 ms, and while 16 records are being written, further ones are dropped. nil
	// means no logging.
	Logger *slog.Logger
}

var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// withDefaults returns o with the defaults in place of zero fields. The error wraps a [*timeout.ConfigError] if a
// field is invalid.
func (o Options) withDefaults() (Options, error) {
	o.Bucket = cmp.Or(o.Bucket, defaultBucket)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.MaxTasks = cmp.Or(o.MaxTasks, defaultMaxTasks)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, c := range []struct {
		key, value, accepted string
		ok                   bool
	}{
		{"Bucket", o.Bucket, "up to 100 letters, digits, - and _", bucketName.MatchString(o.Bucket)},
		{"Replicas", strconv.Itoa(o.Replicas), "1 to 5", 1 <= o.Replicas && o.Replicas <= 5},
		{"Lease", o.Lease.String(), "1s or more", o.Lease >= time.Second},
		{"MaxTasks", strconv.Itoa(o.MaxTasks), "1 or more", o.MaxTasks > 0},
		{"MaxBytes", strconv.FormatInt(o.MaxBytes, 10), "1 or more", o.MaxBytes >= 0},
	} {
		if !c.ok {
			return o, fmt.Errorf("natstasks: %w", &timeout.ConfigError{Key: "Options." + c.key, Value: c.value, Accepted: c.accepted})
		}
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, -1) // the server's value for no limit
	return o, nil
}
