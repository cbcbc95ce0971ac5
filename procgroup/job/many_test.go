//go:build unix

package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// SPEC 15.3, 15.5: many jobs at once, each with two readers, of which one gets what is new and
// the other small pieces as text. Each gets everything once.
func TestManyJobs(t *testing.T) {
	const n, lines = 30, 150
	s := newJobs(t, &job.Set{MaxJobs: n, MaxBytes: n << 20})
	var want strings.Builder
	for i := 1; i <= lines; i++ {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	var all []*job.Job
	for range n {
		all = append(all, s.sh("read x; i=1; while [ $i -le "+strconv.Itoa(lines)+" ]; do echo line $i; i=$((i+1)); done"))
	}
	if _, err := s.Start(t.Context(), s.command("true")); !errors.Is(err, job.ErrFull) {
		t.Errorf("%v", err)
	}
	var readers sync.WaitGroup
	read := func(j *job.Job, until job.Until, get func(int64, int) job.Piece, limit int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var got strings.Builder
		for p := (job.Piece{}); !p.Last; {
			until.From = p.Next
			if j.Wait(ctx, until) == job.WakeCaller {
				t.Errorf("job %d: %+v", j.ID, j.Status())
				return
			}
			p = get(p.Next, limit)
			got.Write(p.Data)
			if p.Dropped != 0 {
				t.Errorf("%d bytes dropped", p.Dropped)
			}
		}
		if got.String() != want.String() {
			t.Errorf("job %d: %d bytes, want %d", j.ID, got.Len(), want.Len())
		}
	}
	for _, j := range all {
		readers.Go(func() { read(j, job.Until{Output: true}, j.Read, 0) })
		readers.Go(func() { read(j, job.Until{Output: true}, j.ReadText, 100) })
	}
	for _, j := range all {
		if _, _, err := j.Write(t.Context(), []byte("go\n")); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
	for _, j := range all {
		if status := j.Status(); status.State != job.Ended || status.ExitCode != 0 {
			t.Errorf("job %d: %+v", j.ID, status)
		}
	}
}

// SPEC 15.5: jobs that are started while the set is closed end, too, or are not started.
func TestStartWhileClosing(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := newJobs(t, &job.Set{MaxJobs: 1000, MaxBytes: 1000 << 20})
		var starters sync.WaitGroup
		var started sync.Map
		first := make(chan bool, 8)
		for range cap(first) {
			starters.Go(func() {
				for {
					j, err := s.Start(t.Context(), s.command("sleep", "1000"))
					if err != nil {
						if err != job.ErrClosed {
							t.Error(err)
						}
						return
					}
					started.Store(j, true)
					select {
					case first <- true:
					default:
					}
				}
			})
		}
		<-first
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left := s.List(); len(left) != 0 {
			t.Errorf("%d jobs are left", len(left))
		}
		starters.Wait()
		started.Range(func(j, _ any) bool {
			if _, err := j.(*job.Job).Result(); !errors.Is(err, job.ErrClosed) {
				t.Errorf("%v", err)
			}
			return true
		})
	}
}

// endings is how many jobs end at the moment of a call.
func endings(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("JOB_TEST_ENDINGS")); err == nil {
		return n
	}
	return 100
}

// SPEC 15.2, 15.4, 15.5: a job that ends at the moment of a Write, a Wait, a Read, a Stop and a Close.
// Each says that it has ended, and none waits.
func TestEndAtTheMomentOfACall(t *testing.T) {
	n := endings(t)
	work := make(chan int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range work {
				endAtTheMomentOfACall(t, rand.New(rand.NewPCG(1, uint64(i))), i)
			}
		})
	}
	for i := 0; i < n && !t.Failed(); i++ {
		work <- i
	}
	close(work)
	workers.Wait()
}

func endAtTheMomentOfACall(t *testing.T, rnd *rand.Rand, i int) {
	var s job.Set
	cmd := exec.Command("true")
	if i%2 == 0 {
		cmd = exec.Command("sh", "-c", "read x; echo out")
	}
	j, err := s.Start(context.Background(), cmd)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var calls sync.WaitGroup
	call := func(fn func()) {
		moment := time.Duration(rnd.Int64N(int64(4 * time.Millisecond)))
		calls.Go(func() {
			time.Sleep(moment)
			fn()
		})
	}
	ended := func(what string) {
		if r, _ := j.Result(); r == nil || j.Status().State != job.Ended {
			t.Errorf("%s: %+v, %+v", what, r, j.Status())
		}
	}
	for range 2 {
		call(func() {
			p, begun := []byte("go\n"), time.Now()
			n, status, err := j.Write(ctx, p)
			switch {
			case errors.Is(err, job.ErrInputClosed) && time.Since(begun) >= time.Second: // on a busy machine the end was late
			case err != nil, n < len(p) && status.State != job.Ended:
				t.Errorf("Write: %d, %+v, %v", n, status, err)
			}
		})
	}
	call(func() {
		if got := j.Wait(ctx, job.Until{}); got != job.WakeEnd {
			t.Errorf("Wait: %v", got)
		}
		ended("Wait")
	})
	call(func() {
		var got []byte
		for p := (job.Piece{}); !p.Last; {
			if w := j.Wait(ctx, job.Until{From: p.Next, Output: true}); w == job.WakeCaller {
				t.Error("a wait for output goes on")
				return
			}
			p = j.Read(p.Next, 0)
			got = append(got, p.Data...)
		}
		ended("Read")
		if r, _ := j.Result(); i%6 == 0 && r.Reason == procgroup.Exited && string(got) != "out\n" {
			t.Errorf("%q, %+v", got, r)
		}
	})
	switch i % 6 {
	case 1, 2:
		call(j.Stop)
	case 3, 4:
		call(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			ended("Close")
			if _, err := s.Start(ctx, exec.Command("true")); err != job.ErrClosed {
				t.Error(err)
			}
		})
	case 5:
		call(func() { _, _ = j.Interrupt() })
	}
	calls.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	ended("at the end")
}
