package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/shelf"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The defaults of a Set; the documentation of its fields says the values.
const (
	defaultMaxJobs   = 64
	defaultMaxOutput = 1 << 20
	defaultMaxBytes  = 64 << 20
	defaultRetention = 10 * time.Minute
	// abortDelay is the AbortDelay of a job: a Stop asks its processes to end.
	abortDelay = 5 * time.Second
)

var (
	// ErrFull is matched by the error of Start if the Set holds as many jobs, or as much output, as
	// it may, and dropping the jobs that have ended would not make enough room.
	ErrFull = errors.New("job: the set is full")
	// ErrClosed is the error of Start after Close. The errors of jobs that Close has stopped match
	// it, too.
	ErrClosed = errors.New("job: the set is closed")
)

// A Set starts jobs and keeps them, bounded in number, in bytes and in time. Its methods are safe
// for concurrent use. Set the fields before the first call. The zero Set is ready to use; close it
// at the end of the program, because its jobs run on otherwise.
type Set struct {
	// MaxJobs is how many jobs there may be, running and ended; 0 or less means 64.
	MaxJobs int
	// MaxOutput is how many bytes of output are kept of each job, the last ones; 0 or less means 1
	// MiB. Memory is used as output arrives.
	MaxOutput int
	// MaxBytes is how many bytes of output may be kept of all jobs; 0 or less means 64 MiB, or
	// MaxOutput if that is more. A running job counts as MaxOutput, and an ended one as the output
	// that is kept of it.
	MaxBytes int64
	// Retention is how long an ended job is kept after it was last read, written to or waited for;
	// 0 means 10 min. If Retention is negative, an ended job is kept until another one needs its
	// place.
	Retention time.Duration

	jobs shelf.Shelf[*Job]

	mu     sync.Mutex
	closed bool
	live   map[*Job]bool
	left   []int // processes that outlive Close
	ending sync.WaitGroup
}

// Start starts cmd with [procgroup.Start] as a job, and returns at once. If there is no room for one more job,
// Start drops the jobs that ended first; if that is not enough, the error matches [ErrFull].
//
// The job is not part of the call that starts it. ctx gives it values, and a ctx that is already
// done keeps it from being started. If ctx is done later, or an execution that ctx belongs to ends
// or reaches a limit, the job runs on. So the limits of a job are those of the option
// [procgroup.Limits], and without it there are none.
//
// Stdin, Stdout and Stderr of cmd must not be set: the input of the job is written with [Job.Write],
// and its output is read with [Job.Read]. The Result has no output, unless a
// [procgroup.Capture] has a Head or a Tail. An AbortDelay of 0 in a [procgroup.Stop], or none, means 5 s, so that
// [Job.Stop] and Close ask the processes of a job to end before they kill them. With its Orphans, processes can outlive
// a job whose command ends by itself, and then also Close. With [procgroup.Helper] as the
// containment, no process of a job outlives this program, even if the program is killed.
//
// Start panics with a [*timeout.ConfigError] if ctx or cmd is nil.
func (s *Set) Start(ctx context.Context, cmd *exec.Cmd, opts ...procgroup.Option) (*Job, error) {
	if ctx == nil {
		panic(&timeout.ConfigError{Key: "context", Value: "nil", Accepted: "one that is not nil"})
	}
	if cmd == nil {
		panic(&timeout.ConfigError{Key: "command", Value: "nil", Accepted: "one that is not nil"})
	}
	for _, stream := range []struct {
		key, instead string
		set          bool
	}{
		{"Stdin", "Write", cmd.Stdin != nil}, {"Stdout", "Read", cmd.Stdout != nil}, {"Stderr", "Read", cmd.Stderr != nil},
	} {
		if stream.set {
			return nil, &timeout.ConfigError{Key: "cmd." + stream.key, Value: "set", Accepted: "nil; use " + stream.instead + " of the job"}
		}
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	j, err := s.start(ctx, cmd, opts)
	if err != nil {
		s.ending.Done()
	}
	return j, err
}

// begin makes Close wait for one more job.
func (s *Set) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.ending.Add(1)
	return nil
}

func (s *Set) start(ctx context.Context, cmd *exec.Cmd, opts []procgroup.Option) (_ *Job, err error) {
	maxJobs, maxOutput := orDefault(s.MaxJobs, defaultMaxJobs), orDefault(s.MaxOutput, defaultMaxOutput)
	maxBytes := orDefault(s.MaxBytes, max(defaultMaxBytes, int64(maxOutput)))
	if int64(maxOutput) > maxBytes {
		return nil, &timeout.ConfigError{Key: "MaxOutput", Value: strconv.Itoa(maxOutput), Accepted: fmt.Sprintf("at most MaxBytes, %d", maxBytes)}
	}
	id, ok := s.jobs.Reserve(int64(maxOutput), maxJobs, maxBytes, func(j *Job) { j.log.Release() })
	if !ok {
		return nil, fmt.Errorf("%w: at most %d jobs and %d bytes of output", ErrFull, maxJobs, maxBytes)
	}
	defer func() {
		if err != nil {
			s.jobs.Cancel(id)
		}
	}()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	keyboard := &capture.Keyboard{R: r, W: w}
	j := &Job{
		ID: id, Args: slices.Clone(cmd.Args), Started: time.Now(),
		set: s, log: transcript.New(maxOutput), input: newInput(keyboard), done: make(chan struct{}),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = keyboard, j.log, j.log // one writer, one pipe
	if err := ctx.Err(); err == nil {
		ctx = context.WithoutCancel(pulse.Mute(ctx))
	}
	ctx, j.cancel = context.WithCancelCause(ctx)
	if j.process, err = procgroup.Start(ctx, cmd, s.options(j, opts)...); err != nil {
		j.cancel(nil)
		j.input.close()
		return nil, err
	}
	j.log.Input, j.log.Ready, j.log.Terminal = j.process.Input, j.process.Ready(), keyboard.Size
	s.jobs.Put(id, j)
	s.mu.Lock()
	if s.live == nil {
		s.live = map[*Job]bool{}
	}
	s.live[j] = true
	if s.closed {
		j.cancel(ErrClosed) // Close has not seen it, but waits for it
	}
	s.mu.Unlock()
	go j.supervise()
	return j, nil
}

// options returns opts, changed as a job needs them: the log gets the output, and learns of a wait for input before
// the caller's function is called, so that no Wait waits for that function.
func (s *Set) options(j *Job, opts []procgroup.Option) []procgroup.Option {
	var output procgroup.Capture
	var stop procgroup.Stop
	var input procgroup.Input
	for _, o := range opts {
		switch o := o.(type) {
		case procgroup.Capture:
			output = o
		case *procgroup.Capture: // is an Option, too
			output = *o
		case procgroup.Stop:
			stop = o
		case *procgroup.Stop:
			stop = *o
		case procgroup.Input:
			input = o
		case *procgroup.Input:
			input = *o
		}
	}
	if output.Head == 0 && output.Tail == 0 {
		output.Tail = -1
	}
	stop.AbortDelay = cmp.Or(stop.AbortDelay, abortDelay)
	notify := input.Notify
	input.Notify = func(w procgroup.InputWait) {
		j.log.Changed()
		if notify != nil {
			notify(w)
		}
	}
	return slices.Concat(opts, []procgroup.Option{output, stop, input})
}

func orDefault[N int | int64](n, otherwise N) N {
	if n <= 0 {
		return otherwise
	}
	return n
}

// ended makes j an ended job, which may be dropped. It is called when the result of j is complete, and before anybody
// can see it.
func (s *Set) ended(j *Job) {
	s.mu.Lock()
	delete(s.live, j)
	if s.closed {
		s.left = append(s.left, j.result.Survivors...)
	}
	s.mu.Unlock()
	s.jobs.Rest(j.ID, j.log.Trim(), cmp.Or(s.Retention, defaultRetention))
}

// Get returns the job with the given number, or nil if the Set has none or has dropped it.
func (s *Set) Get(id int) *Job {
	j, _ := s.jobs.Get(id)
	return j
}

// List returns the jobs of the Set in the order in which they were started.
func (s *Set) List() []*Job { return s.jobs.All() }

// Close stops all jobs, waits until they have ended, and drops them; no job can be started
// afterwards. The processes of a job are asked to end, and are killed after the AbortDelay of the job. A job
// that the caller still holds has its result, but no output. If processes could not be killed, the
// error says which. Close may be called more than once.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	for j := range s.live {
		j.cancel(ErrClosed)
	}
	s.mu.Unlock()
	s.ending.Wait()
	s.jobs.Clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) > 0 {
		return fmt.Errorf("job: processes %v could not be killed", s.left)
	}
	return nil
}
