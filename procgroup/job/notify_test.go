//go:build unix

package job_test

import (
	"context"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// SPEC 18.2, 15.2: a wait ends when the command says that it is ready, and the status has what it has said.
func TestReady(t *testing.T) {
	inWorld(t, new(job.Set), func(w *world) {
		say := func(text string) simulate.Step { return simulate.Step{Do: simulate.Say, N: 1, Text: text} }
		j := w.start(context.Background(), simulate.Script{sleep(sec), say("STATUS=loading"), sleep(sec), say("READY=1\nSTATUS=up"), sleep(sec), exit(3)}, procgroup.Notify{Socket: true})
		after(t, 2*sec, func() {
			if wake := j.Wait(context.Background(), job.Until{Ready: true}); wake != job.WakeReady {
				t.Errorf("woken by %v", wake)
			}
		})
		want := procgroup.Notices{Ready: true, Status: "up"}
		if s := j.Status(); s.State != job.Running || s.Notices != want {
			t.Errorf("%+v", s)
		}
		after(t, sec, func() { j.Wait(context.Background(), job.Until{}) })
		if s := j.Status(); s.State != job.Ended || s.Notices != want {
			t.Errorf("%+v", s)
		}
		if wake := j.Wait(context.Background(), job.Until{Ready: true}); wake != job.WakeReady {
			t.Errorf("woken by %v", wake)
		}
	})
}
