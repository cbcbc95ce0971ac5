//go:build amd64 || arm64

package job_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// SPEC 15.2, 15.6: a command that waits for input is found, also the second time that it asks for the
// same, or asks without a word.
func TestWaitForInput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, prompt string }{
		{"with a prompt", "for i in 1 2 3; do printf 'Name? '; read x; echo; done", "Name?"},
		{"without a word", "read x; read x; read x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newJobs(t, &job.Set{})
			j := s.sh(tt.script)
			for range 3 {
				wait(t, j, job.WakeInput, job.Until{Input: true})
				if status := j.Status(); status.State != job.Waiting || !status.Input.Certain || status.Input.Pid == 0 || status.Input.Prompt != tt.prompt {
					t.Fatalf("%+v", status)
				}
				if _, status, err := j.Write(t.Context(), []byte("x\n")); status.State == job.Waiting || err != nil {
					t.Fatalf("%+v, %v", status, err)
				}
			}
			wait(t, j, job.WakeEnd, job.Until{Input: true})
		})
	}
}

// SPEC 15.6: a command whose input is closed does not wait for input any more.
func TestCloseInputAnswers(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("cat; sleep 600")
	wait(t, j, job.WakeInput, job.Until{Input: true})
	j.CloseInput()
	if status := j.Status(); status.State != job.Running {
		t.Errorf("%+v", status)
	}
	wait(t, j, job.WakeSilence, job.Until{Input: true, Silence: 1200 * time.Millisecond})
}

// A caller's Notify is called for a job, and one that blocks does not delay Wait.
func TestInputWaitOfAJob(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	called, release := make(chan procgroup.InputWait, 1), make(chan struct{})
	var once sync.Once
	j := s.sh("printf 'Name? '; read x", procgroup.Input{Notify: func(w procgroup.InputWait) {
		once.Do(func() {
			called <- w
			<-release
		})
	}})
	wait(t, j, job.WakeInput, job.Until{Input: true})
	select {
	case w := <-called:
		if w.Prompt != "Name?" || w.Pid == 0 {
			t.Errorf("%+v", w)
		}
	case <-time.After(time.Minute):
		t.Error("the function was not called within a minute")
	}
	close(release)
	if _, _, err := j.Write(t.Context(), []byte("x\n")); err != nil {
		t.Error(err)
	}
	wait(t, j, job.WakeEnd, job.Until{})
}
