//go:build amd64 || arm64

package job_test

import (
	"regexp"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// SPEC 6.19, 15.1: a job may have a terminal. Text that is written to it is typed, and an interrupt ends
// what is in the foreground, and not the shell.
func TestJobWithTerminal(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	// The program that is interrupted says "got": before it runs, the shell would get the interrupt, and start it all the same.
	j := s.sh("trap 'sleep 0.2; echo interrupted' INT; test -t 0 && test -t 1 && printf 'Name? '; read x; sh -c 'echo got $0; exec sleep 600' $x; read x; exit 3",
		procgroup.Terminal{Rows: 24, Cols: 80})
	wait(t, j, job.WakeInput, job.Until{Input: true})
	if w := j.Status().Input; !w.Certain || w.Prompt != "Name?" {
		t.Errorf("%+v", w)
	}
	if _, _, err := j.Write(t.Context(), []byte("it\n")); err != nil {
		t.Error(err)
	}
	wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("^got it$")})
	if _, err := j.Interrupt(); err != nil {
		t.Error(err)
	}
	wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("interrupted")})
	wait(t, j, job.WakeInput, job.Until{Input: true})
	j.CloseInput() // Ctrl-D
	wait(t, j, job.WakeEnd, job.Until{})
	if j.Status().Result.ExitCode != 3 {
		t.Errorf("%+v", j.Status())
	}
}
