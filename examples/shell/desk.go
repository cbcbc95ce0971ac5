package main

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// A desk holds the jobs of the client, and counts the running commands.
type desk struct {
	*settings
	logger *slog.Logger
	jobs   job.Set
	files  *procgroup.SpillDir // for the output of commands; nil means that no file is kept

	mu      sync.Mutex
	closed  bool
	running int
	told    map[int]*account // by job

	watched sync.WaitGroup // commands whose end is to be logged
}

// An account records the output of a job that was returned to the client.
type account struct {
	last int64  // position after which the last answer with output began
	next int64  // position up to which it has the output
	file string // with all of the output, or ""
	tty  bool
}

// The defaults of job.Set: how long ended jobs are kept, and how many.
const (
	retention = 10 * time.Minute
	kept      = 64
)

func newDesk(s *settings, logger *slog.Logger) (*desk, error) {
	d := &desk{settings: s, logger: logger, told: map[int]*account{}}
	d.jobs.MaxJobs = max(kept, s.maxRunning)
	d.jobs.MaxBytes = int64(d.jobs.MaxJobs) << 20
	if s.spill > 0 {
		var err error
		if d.files, err = procgroup.NewSpillDir("", 16*s.spill); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// close ends all jobs.
func (d *desk) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	err := d.jobs.Close()
	d.watched.Wait()
	if d.files != nil {
		err = errors.Join(err, d.files.Close())
	}
	return err
}

// begin counts a command that is about to start. It returns an error if no more commands may run.
func (d *desk) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errors.New("the server is shutting down")
	}
	if d.running >= d.maxRunning {
		return fmt.Errorf("%d commands are running, and this server allows no more at once. End one with job_signal, or wait for one with job_read; job_list shows yours", d.running)
	}
	d.running++
	d.watched.Add(1)
	return nil
}

// ended records that a command no longer runs.
func (d *desk) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
}

// get returns a job, or an error if there is no such job.
func (d *desk) get(id int) (*job.Job, error) {
	if j := d.jobs.Get(id); j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("job %d: there is no such job. Jobs are forgotten %v after they have ended and were last read; job_list shows those that there are", id, retention)
}

// account returns a copy of the account of a job, or the zero account if there is none.
func (d *desk) account(id int) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.told[id]; a != nil {
		return *a
	}
	return account{}
}

// tell records that the output up to the position next was returned to the client.
func (d *desk) tell(id int, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.told[id]; a != nil && next > a.next {
		a.last, a.next = a.next, next
	}
}
