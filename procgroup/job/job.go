package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/shelf"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// A Job is a command that was started by a [Set]. Its methods are safe for concurrent use, even after the Set has
// dropped it.
type Job struct {
	// ID is the number of the job in its Set, from 1. The Set never uses it again.
	ID int
	// Args contains the arguments of the command, beginning with its name.
	Args []string
	// Started is the time at which the job was started.
	Started time.Time

	set     *Set
	log     *transcript.Log
	input   *input
	cancel  context.CancelCauseFunc
	process *procgroup.Process

	// supervise sets result and err before it calls log.End. Other goroutines read them only after log.Ended is true.
	result *procgroup.Result
	err    error
	done   chan struct{} // closed after log.End
}

// The defaults of the fields of a Set.
const (
	defaultMaxJobs   = 64
	defaultMaxOutput = 1 << 20
	defaultMaxBytes  = 64 << 20
	defaultRetention = 10 * time.Minute
	// abortDelay is the AbortDelay of a job without one, so that [Job.Stop] and [Set.Close] ask the processes to end
	// before they kill them.
	abortDelay = 5 * time.Second
)

var (
	// ErrFull is wrapped by the error of [Set.Start] if one more job would exceed MaxJobs or MaxBytes of the Set, even
	// without the jobs that have ended.
	ErrFull = errors.New("job: the set is full")
	// ErrClosed is the error of [Set.Start] after [Set.Close]. The Err of the [Status] of a job that Close has stopped
	// matches it, too.
	ErrClosed = errors.New("job: the set is closed")
)

// A Set starts jobs and keeps them, bounded in number, in bytes and in time. Its methods are safe for concurrent use.
// Set the fields before the first call. The zero Set is ready to use. Call Close at the end of the program, because the
// jobs run on otherwise.
type Set struct {
	// MaxJobs is the maximum number of jobs in the Set, running and ended; 0 or less means 64.
	MaxJobs int
	// MaxOutput is the number of bytes that are kept of each job's output, the last ones; 0 or less means 1 MiB. Memory
	// is used as output arrives.
	MaxOutput int
	// MaxBytes is the number of bytes of output that may be kept of all jobs; 0 or less means 64 MiB, or MaxOutput if
	// that is more. A running job counts as MaxOutput, and an ended job as the output that is kept of it. If MaxBytes
	// is positive and less than MaxOutput, Start returns a [*timeout.ConfigError].
	MaxBytes int64
	// Retention is the time for which an ended job is kept after its end or, if that is later, after it was last read,
	// written to, signalled or waited for; 0 means 10 min. An ended job is dropped earlier if a new job needs its
	// place. If Retention is negative, it is kept until then.
	Retention time.Duration

	jobs shelf.Shelf[*Job]

	mu     sync.Mutex // guards closed, live and left
	closed bool
	live   map[*Job]bool  // the jobs that are being started or have not ended
	left   []int          // processes of jobs stopped by Close that could not be killed
	ending sync.WaitGroup // counts the calls of Start in progress and the jobs that have not ended
}

// touch starts the retention of the job again if the job has ended.
func (j *Job) touch() { j.set.jobs.Touch(j.ID) }
