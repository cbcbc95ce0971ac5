package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// A desk holds the clients, each with its own jobs, and counts the running commands.
type desk struct {
	*settings
	logger *slog.Logger

	mu       sync.Mutex
	closed   bool
	running  int
	clients  map[*mcp.ServerSession]*client
	last     int            // number of the client that came last
	ending   sync.WaitGroup // of clients
	problems []error        // of their ends
}

func newDesk(s *settings, logger *slog.Logger) *desk {
	return &desk{settings: s, logger: logger, clients: map[*mcp.ServerSession]*client{}}
}

// A client is a session with its jobs. The number of a job means nothing to any other client.
type client struct {
	*desk
	logger *slog.Logger
	jobs   job.Set

	mu    sync.Mutex
	files *procgroup.SpillDir // made for the first command
	told  map[int]*account    // by job

	gone    bool
	watched sync.WaitGroup // commands whose end is to be logged
}

// An account records the output of a job that was returned to its client.
type account struct {
	last int64  // position after which the last answer with output began
	next int64  // position up to which it has the output
	file string // with all of the output, or ""
	tty  bool
}

var errClosing = errors.New("the server is shutting down")

// of returns the client of a session. The jobs of the client end with the session.
func (d *desk) of(s *mcp.ServerSession) (*client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosing
	}
	if c := d.clients[s]; c != nil {
		return c, nil
	}
	d.last++
	c := &client{desk: d, logger: d.logger.With(slog.Int("client", d.last)), told: map[int]*account{}}
	c.jobs.MaxJobs = max(kept, d.jobs) // one client may run as many as all
	c.jobs.MaxBytes = int64(c.jobs.MaxJobs) << 20
	d.clients[s] = c
	if d.http != "" { // over stdio the client is the only one, and close comes soon
		go func() {
			_ = s.Wait()
			d.leave(s)
		}()
	}
	return c, nil
}

// leave ends the jobs of a client.
func (d *desk) leave(s *mcp.ServerSession) {
	d.mu.Lock()
	c := d.clients[s]
	delete(d.clients, s)
	if c != nil {
		d.ending.Add(1)
	}
	d.mu.Unlock()
	if c == nil {
		return
	}
	defer d.ending.Done()
	if err := c.close(); err != nil {
		d.mu.Lock()
		d.problems = append(d.problems, err)
		d.mu.Unlock()
	}
}

func (c *client) close() error {
	c.logger.Info("client gone")
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	err := c.jobs.Close()
	c.watched.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files != nil {
		err = errors.Join(err, c.files.Close())
	}
	return err
}

// close ends all jobs.
func (d *desk) close() error {
	d.mu.Lock()
	d.closed = true
	all := slices.Collect(maps.Keys(d.clients))
	d.mu.Unlock()
	var each sync.WaitGroup
	for _, s := range all {
		each.Go(func() { d.leave(s) })
	}
	each.Wait()
	d.ending.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.problems...)
}

// linger waits until all jobs have ended, but no longer than d.lingering.
func (d *desk) linger(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, d.lingering)
	defer stop()
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.clients))
	d.mu.Unlock()
	for _, c := range all {
		for _, j := range c.jobs.List() {
			j.Wait(ctx, job.Until{})
		}
	}
}

// begin counts a command that is about to start. It returns an error if no more commands may run.
func (c *client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return errClosing
	}
	d := c.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running >= d.settings.jobs {
		return fmt.Errorf("%d commands are running, and this server allows no more at once. End one with job_signal, or wait for one with job_read; job_list shows yours", d.running)
	}
	d.running++
	c.watched.Add(1)
	return nil
}

// done reverses begin, for a command that was not started.
func (c *client) done() {
	c.freed()
	c.watched.Done()
}

// freed records that a command no longer runs.
func (c *client) freed() {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	c.running--
}

// get returns a job of the client, or an error if the client has no such job.
func (c *client) get(id int) (*job.Job, error) {
	if j := c.jobs.Get(id); j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("job %d: there is no such job. Jobs are forgotten %v after they have ended and were last read; job_list shows those that there are", id, retention)
}

// The defaults of job.Set: how long ended jobs are kept, and how many.
const (
	retention = 10 * time.Minute
	kept      = 64
)

// account returns a copy of the account of a job, or the zero account if there is none.
func (c *client) account(id int) account {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.told[id]; a != nil {
		return *a
	}
	return account{}
}

// tell records that the output up to the position next was returned to the client.
func (c *client) tell(id int, next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.told[id]; a != nil && next > a.next {
		a.last, a.next = a.next, next
	}
}
