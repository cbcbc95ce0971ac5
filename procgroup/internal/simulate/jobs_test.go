//go:build unix

package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A jobRun is a job with clients that read it, wait for it and stop it.
type jobRun struct {
	Script            Script
	Total, Idle, Kill time.Duration
	Max               int // bytes of output that are kept
	Close             time.Duration
	Clients           [][]jobOp
}

// A jobOp is what a client does next.
type jobOp struct {
	Do      string // wait, read, sleep, stop or signal
	D       time.Duration
	Output  bool
	Silence time.Duration
	N       int
}

// A jobSaw is what came of it.
type jobSaw struct {
	jobOp
	began, ended time.Time
	from         int64
	wake         job.Wake
	piece        job.Piece
}

type jobSeen struct {
	jobRun
	m                  *Machine
	begun, over, close time.Time // close is when Close was called
	closed             time.Duration
	saw                [][]jobSaw
	stops              []time.Time
	res                *procgroup.Result
	err                error
	wrong              []string
}

func (s *jobSeen) bad(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func generateJob(rng *rand.Rand) (r jobRun) {
	g := generator{Rand: rng, unit: []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}[rng.IntN(3)]}
	r.Script, r.Total, r.Kill, r.Max = g.script(2), 20*g.time(), g.time(), g.pick(0, 1, 100, 70_000)
	if g.one(2) {
		r.Idle = 3 * g.time()
	}
	if r.Close = time.Hour; g.one(4) {
		r.Close = 3 * g.time()
	}
	for range 1 + g.IntN(3) {
		var ops []jobOp
		for range 1 + g.IntN(6) {
			op := jobOp{Do: []string{"wait", "wait", "wait", "read", "sleep"}[g.IntN(5)], D: g.time(), N: g.pick(0, 1, 100, 50_000)}
			if op.Do == "wait" {
				op.Output = g.one(2)
				if op.D = 3 * g.time(); g.one(2) {
					op.Silence = g.time()
				}
			} else if g.one(12) {
				op.Do = []string{"stop", "signal"}[g.IntN(2)]
			}
			ops = append(ops, op)
		}
		r.Clients = append(r.Clients, ops)
	}
	return r
}

func (r jobRun) run() *jobSeen {
	s := &jobSeen{jobRun: r, m: New(r.Script), begun: time.Now(), saw: make([][]jobSaw, len(r.Clients))}
	set := &job.Set{MaxOutput: r.Max}
	var j *job.Job
	// The job is no part of the execution that starts it, which ends at once.
	err := timeout.Run(machine.With(context.Background(), s.m), func(ctx context.Context) (err error) {
		j, err = set.Start(ctx, &exec.Cmd{Path: "/simulated", Args: []string{"simulated"}}, procgroup.Limits{Total: r.Total, Idle: r.Idle},
			procgroup.Stop{Grace: r.Kill, AbortDelay: r.Kill})
		return err
	}, timeout.Config{Total: time.Millisecond / 2, Idle: time.Millisecond / 2})
	if err != nil {
		s.bad("not started: %v", err)
		s.m.Off()
		return s
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	all.Go(func() {
		if wake := j.Wait(context.Background(), job.Until{}); wake != job.WakeEnd {
			s.bad("a wait for the end ended with %v", wake)
		}
		s.over = time.Now()
	})
	all.Go(func() {
		timer := time.NewTimer(r.Close)
		defer timer.Stop()
		<-timer.C
		s.close = time.Now()
		if err := set.Close(); err != nil && len(s.m.Alive()) == 0 {
			s.bad("Close: %v", err)
		}
		s.closed = time.Since(s.close)
		if j.Status().Result == nil {
			s.bad("Close has returned before the job had ended")
		}
	})
	for i, ops := range r.Clients {
		all.Go(func() {
			from := int64(0)
			do := func(op jobOp) job.Piece {
				saw := jobSaw{jobOp: op, began: time.Now(), from: from}
				switch op.Do {
				case "wait":
					ctx, cancel := context.WithTimeout(context.Background(), op.D)
					saw.wake = j.Wait(ctx, job.Until{From: from, Output: op.Output, Silence: op.Silence})
					cancel()
				case "read":
					saw.piece = j.Read(from, op.N)
					from = saw.piece.Next
				case "sleep":
					time.Sleep(op.D)
				case "stop":
					mu.Lock()
					s.stops = append(s.stops, time.Now())
					mu.Unlock()
					j.Stop()
				case "signal":
					if _, err := j.Signal(syscall.SIGWINCH); err != nil {
						s.bad("Signal: %v", err)
					}
				}
				saw.ended = time.Now()
				s.saw[i] = append(s.saw[i], saw)
				return saw.piece
			}
			for _, op := range ops {
				do(op)
			}
			j.Wait(context.Background(), job.Until{})
			for !do(jobOp{Do: "read", N: 50_000}).Last {
			}
			do(jobOp{Do: "read"})
		})
	}
	all.Wait()
	s.res, s.err = j.Status().Result, j.Status().Err
	if n, status, err := j.Write(context.Background(), []byte("late")); n != 0 || err != nil || status.Result == nil {
		s.bad("Write after the end: %d, %v, %v", n, status, err) // SPEC 15.4
	}
	s.wrong = append(s.wrong, s.m.Off()...)
	return s
}

var jobRules = []func(*jobSeen){jobIsStopped, jobWaits, jobReads, jobCloses}

// SPEC 15.1: the limits hold, whoever looks; Stop and Close abort.
func jobIsStopped(s *jobSeen) {
	idle := s.begun.Add(min(s.Idle, s.Total))
	for _, r := range s.m.ReadOut {
		if r.At.Before(idle) {
			idle = r.At.Add(min(s.Idle, s.Total))
		}
	}
	due := s.begun.Add(s.Total)
	if s.Idle > 0 && idle.Before(due) {
		due = idle
	}
	ends := append(slices.Clone(s.stops), s.close)
	abort := slices.MinFunc(ends, time.Time.Compare)
	var stop *timeout.Error
	_ = errors.As(s.err, &stop)
	end := s.m.LeaderEnded()
	switch s.res.Reason {
	case procgroup.IdleTimeout, procgroup.TotalTimeout:
		if at := s.begun.Add(stop.Elapsed); !at.Equal(due) || abort.Before(at) || end.Before(at) {
			s.bad("%v after %v, due after %v, an abort came after %v", s.res.Reason, stop.Elapsed, due.Sub(s.begun), abort.Sub(s.begun))
		}
	case procgroup.Aborted:
		closed := errors.Is(s.err, job.ErrClosed)
		if at := s.begun.Add(stop.Elapsed); !at.Equal(abort) || due.Before(at) || closed && !at.Equal(s.close) || !closed && !slices.ContainsFunc(s.stops, at.Equal) {
			s.bad("aborted after %v by %v, want %v", stop.Elapsed, s.err, abort.Sub(s.begun))
		}
	case procgroup.Exited:
		if due.Before(end) || abort.Before(end) {
			s.bad("ended after %v, a limit was due after %v, an abort came after %v", end.Sub(s.begun), due.Sub(s.begun), abort.Sub(s.begun))
		}
	default:
		s.bad("the reason is %v", s.res.Reason)
	}
}

// SPEC 15.2: a wait ends at the first of the events that it names, at that instant, and says which. Output before the end
// is reported before it.
func jobWaits(s *jobSeen) {
	never := s.begun.Add(1000 * time.Hour)
	for i, all := range s.saw {
		for _, w := range all {
			if w.Do != "wait" {
				continue
			}
			at := map[job.Wake]time.Time{job.WakeEnd: later(w.began, s.over), job.WakeCaller: w.began.Add(w.D)}
			total, last, tie := int64(0), w.began, false
			for _, r := range s.m.ReadOut {
				if total += int64(r.N); w.Output && total > w.from && at[job.WakeOutput].IsZero() {
					at[job.WakeOutput] = later(w.began, r.At)
				}
				if w.Silence > 0 && r.At.After(w.began) {
					tie = tie || r.At.Equal(last.Add(w.Silence))
					if r.At.Before(last.Add(w.Silence)) {
						last = r.At
					}
				}
			}
			if w.Silence > 0 {
				at[job.WakeSilence] = last.Add(w.Silence)
			}
			first := never
			for _, t := range at {
				if t.Before(first) {
					first = t
				}
			}
			got, ok := at[w.wake]
			if out, is := at[job.WakeOutput]; w.wake == job.WakeEnd && is && !out.After(got) {
				s.bad("client %d: the end was reported before output", i)
			}
			if !tie && (!ok || !got.Equal(first) || !w.ended.Equal(first)) {
				s.bad("client %d: a wait from %v on ended after %v with %v, want %v of %v", i, w.began.Sub(s.begun), w.ended.Sub(s.begun), w.wake, first.Sub(s.begun), at)
			}
		}
	}
}

// SPEC 15.3: each reader gets every byte once, or how many were dropped before what it gets.
func jobReads(s *jobSeen) {
	most := int64(s.Max)
	if most == 0 {
		most = 1 << 20
	}
	var total int64
	for _, r := range s.m.ReadOut {
		total += int64(r.N)
	}
	for i, all := range s.saw {
		next, last := int64(0), false
		for _, w := range all {
			p := w.piece
			if w.Do != "read" {
				continue
			}
			if w.from != next || p.Next != next+p.Dropped+int64(len(p.Data)) || w.N > 0 && len(p.Data) > w.N {
				s.bad("client %d: read from %d: %d dropped, %d bytes, next is %d", i, w.from, p.Dropped, len(p.Data), p.Next)
			}
			if err := checkBytes(0, next+p.Dropped, p.Data); err != nil {
				s.bad("client %d: %v", i, err)
			}
			if p.Dropped > max(total-most-next, 0) && w.ended.Before(s.close) { // a set that is closed keeps nothing
				s.bad("client %d: %d bytes are dropped from %d on, of %d, though %d are kept", i, p.Dropped, next, total, most)
			}
			if last && (len(p.Data) > 0 || p.Dropped > 0 || !p.Last) || p.Last && w.ended.Before(s.over) {
				s.bad("client %d: something follows the last piece", i)
			}
			next, last = p.Next, p.Last
		}
		if next != total {
			s.bad("client %d has read %d bytes with those that were dropped, of %d: %v", i, next, total, s.err)
		}
	}
}

// SPEC 15.5: closing the set takes the kill grace and a second, and leaves nothing.
func jobCloses(s *jobSeen) {
	if s.closed > s.Kill+time.Second {
		s.bad("Close took %v, the kill grace is %v", s.closed, s.Kill)
	}
	for _, pid := range s.m.Alive() {
		if !slices.Contains(s.res.Survivors, pid) {
			s.bad("process %d is alive", pid)
		}
	}
}

// SPEC 15: random jobs with random clients, a quarter as many as there are random commands.
func TestJobs(t *testing.T) {
	for n := range harness.Seeds(t, simRuns()/4) {
		r := generateJob(rand.New(rand.NewPCG(n, 1)))
		var wrong []string
		hung := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("seed %d hangs:\n%+v", n, r)) })
		synctest.Test(t, func(t *testing.T) {
			s := r.run()
			if s.res != nil {
				for _, rule := range jobRules {
					rule(s)
				}
			}
			wrong = s.wrong
		})
		hung.Stop()
		if len(wrong) > 0 {
			t.Errorf("%s\n%+v", strings.Join(wrong, "\n"), r)
		}
	}
}
