//go:build unix

package job_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

const hung = time.Minute // only says that something hangs

func TestMain(m *testing.M) {
	procgroup.HelperMain()
	harness.Main(m, nil, harness.Options{})
}

// A jobs is a Set of a test. Everything that it has started must be gone at the end.
type jobs struct {
	*job.Set
	t    testing.TB
	mark string
}

func newJobs(t testing.TB, set *job.Set) *jobs {
	s := &jobs{set, t, harness.Mark()}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		harness.None(t, s.mark)
	})
	return s
}

// command returns a command that is known to be of the test.
func (s *jobs) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), s.mark)
	return cmd
}

// sh starts a script.
func (s *jobs) sh(script string, opts ...procgroup.Option) *job.Job {
	s.t.Helper()
	j, err := s.Start(context.Background(), s.command("sh", "-c", script), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// wait waits until the job has done what a test needs, and fails if that is not why the wait ends.
func wait(t testing.TB, j *job.Job, want job.Wake, until job.Until) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hung)
	defer cancel()
	if got := j.Wait(ctx, until); got != want {
		t.Fatalf("%v, want %v; %+v, output %q", got, want, j.Status(), j.ReadText(0, 0).Data)
	}
}
