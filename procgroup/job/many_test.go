//go:build unix

package job_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

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
			if err := j.(*job.Job).Status().Err; !errors.Is(err, job.ErrClosed) {
				t.Errorf("%v", err)
			}
			return true
		})
	}
}
