//go:build unix

package job_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

const (
	hung    = time.Minute     // only says that something hangs
	hostEnv = "JOB_TEST_HOST" // the test binary is then the host of a job
)

func TestMain(m *testing.M) {
	procgroup.HelperMain()
	if os.Getenv(hostEnv) != "" {
		host()
	}
	if signal.Ignored(os.Interrupt) { // as in the background of a shell, from which commands have that
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	files := openFiles()
	code := leftovers.Main(m)
	for begun := time.Now(); code == 0 && openFiles() > files; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > hung {
			list, _ := exec.Command("ls", "-l", fmt.Sprintf("/proc/%d/fd", os.Getpid())).Output()
			fmt.Fprintf(os.Stderr, "FAIL: %d descriptors left open, %d before\n%s", openFiles(), files, list)
			code = 1
		}
	}
	os.Exit(code)
}

// openFiles returns the number of open descriptors but those of the runtime's poller, which stay, or 0
// where it cannot be had.
func openFiles() (n int) {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if what, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && (len(what) < 10 || what[:10] != "anon_inode") {
			n++
		}
	}
	return n
}

// A jobs is a Set of a test. Everything that it has started must be gone at the end.
type jobs struct {
	*job.Set
	t    testing.TB
	mark string
}

func newJobs(t testing.TB, set *job.Set) *jobs {
	s := &jobs{set, t, leftovers.Mark()}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		leftovers.None(t, s.mark)
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
