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
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Start starts cmd with [procgroup.Start] as a job, and does not wait for its end. If there is no room for the job,
// Start drops jobs that have ended, beginning with the one that ended first; if dropping all would not be enough, it
// drops none, and the error matches [ErrFull]. After Close the error is [ErrClosed].
//
// ctx passes its values to the job. If ctx is already done, or is done while Start waits for a file system as
// [procgroup.Start] does, Start starts nothing and returns a [*timeout.Error]. If ctx is done later, or an execution
// that ctx belongs to ends or reaches a limit, the job runs on. So only the option [procgroup.Limits] and the context
// of [exec.CommandContext] limit a job.
//
// Stdin, Stdout and Stderr of cmd must be nil, or else Start returns a [*timeout.ConfigError]: [Job.Write] writes the
// input of the job, and [Job.Read] reads its output. The Result contains no output, unless a [procgroup.Capture] has
// a Head or a Tail. Without an AbortDelay in a [procgroup.Stop], the AbortDelay is 5 s, so that [Job.Stop] and Close
// ask the processes of a job to end before they kill them. With Orphans in a Stop, processes can outlive a job whose
// command ends by itself, and then also Close. With [procgroup.Helper] as the containment, no process of a job
// outlives this program, even if the program is killed.
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

// begin makes Close wait for one more call of s.ending.Done. It returns ErrClosed after Close was called.
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
	cmd.Stdin, cmd.Stdout, cmd.Stderr = keyboard, j.log, j.log // the same writer for both, so that they share a pipe
	if err := ctx.Err(); err == nil {
		ctx = command.WithStarter(context.WithoutCancel(pulse.Mute(ctx)), ctx)
	}
	ctx, j.cancel = context.WithCancelCause(ctx)
	s.add(j)
	j.process, err = procgroup.Start(ctx, cmd, s.options(j, opts)...)
	if err != nil {
		j.cancel(nil)
		j.input.close()
		s.remove(j)
		if errors.Is(err, ErrClosed) { // Close has ended the start
			err = ErrClosed
		}
		return nil, err
	}
	j.log.Input, j.log.Ready, j.log.Terminal = j.process.Input, j.process.Ready(), keyboard.Size
	s.jobs.Put(id, j)
	go j.supervise()
	return j, nil
}

// supervise waits for the end of the command, and records it. The log gets no output after the result is complete, so a
// Wait that returns WakeEnd has seen all output.
func (j *Job) supervise() {
	defer j.set.ending.Done()
	j.result, j.err = j.process.Wait()
	j.cancel(nil)
	j.input.close()
	j.set.ended(j)
	j.log.End()
	close(j.done)
}

// add makes Close cancel j, which is about to be started. If Close was called already, add cancels j.
func (s *Set) add(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[*Job]bool{}
	}
	s.live[j] = true
	if s.closed {
		j.cancel(ErrClosed)
	}
}

// remove undoes add. survivors are the processes of j that could not be killed.
func (s *Set) remove(j *Job, survivors ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, j)
	if s.closed {
		s.left = append(s.left, survivors...)
	}
}

// options returns opts with the changes that a job needs: without a Head or a Tail the Result keeps no output,
// AbortDelay gets its default, and Input.Notify first wakes the calls of Wait and then calls the caller's function, so
// that no Wait is delayed by that function.
func (s *Set) options(j *Job, opts []procgroup.Option) []procgroup.Option {
	var output procgroup.Capture
	var stop procgroup.Stop
	var input procgroup.Input
	for _, o := range opts {
		switch o := o.(type) {
		case procgroup.Capture:
			output = o
		case *procgroup.Capture: // a pointer is an Option, too
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

// ended makes j an ended job, which may be dropped. supervise calls it after it has set the result of j, and before it
// calls log.End.
func (s *Set) ended(j *Job) {
	s.remove(j, j.result.Survivors...)
	s.jobs.Rest(j.ID, j.log.Trim(), cmp.Or(s.Retention, defaultRetention))
}

// Get returns the job with the ID id, or nil if the Set has no such job or has dropped it.
func (s *Set) Get(id int) *Job {
	j, _ := s.jobs.Get(id)
	return j
}

// List returns the jobs that Start has started and the Set has not dropped, in the order in which they were started.
func (s *Set) List() []*Job { return s.jobs.All() }

// Close stops all jobs, waits until they have ended, and drops them; no job can be started afterwards. The processes of
// a job are asked to end, and are killed after the AbortDelay of the job. The methods of a dropped job still return its
// result, but no output. The error is nil, or lists the processes that could not be killed. Close may be called more
// than once.
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
