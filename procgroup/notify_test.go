//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func says(text string) Step { return Step{Do: Say, N: 1, Text: text} }

func extends(d time.Duration) Step {
	return says(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()))
}

// told compares the notices of the result, and the detail of the error.
func told(want procgroup.Notices, detail any) func(*Run) {
	return func(r *Run) {
		if r.Result.Notices != want || r.Process.Notices() != want {
			r.Errorf("the notices are %+v, want %+v", r.Result.Notices, want)
		}
		var stop *timeout.Error
		if errors.As(r.Err, &stop) && stop.Detail != detail {
			r.Errorf("the newest detail is %v, want %v", stop.Detail, detail)
		}
	}
}

// SPEC 18.2: states are heard during the grace, too, and a pause in a flood lasts 10 ms. The rest is for the rule notices of the
// simulation.
func TestNotify(t *testing.T) {
	const s = time.Second
	socket := procgroup.Notify{Socket: true}
	Test(t, []Scenario{
		{Name: "states during the grace", Script: Script{traps(15, says("STOPPING=1"), sleeps(s), exits(0)), lasts},
			Options: []procgroup.Option{socket, limits(2*s, 0)}, Want: []string{"2s 1: SIGTERM, SIGCONT", "3s 1: exit 0", "3s wait: total timeout 124"},
			Check: told(procgroup.Notices{Stopping: true}, nil)},
		{Name: "a heartbeat counts in a flood", Script: Script{sleeps(s), {Do: Say, N: 250, Text: "X=1"}, says("STATUS=late\nWATCHDOG=1"), lasts},
			Options: []procgroup.Option{socket, limits(0, 3*s)}, Want: []string{"4.02s 1: SIGTERM, dies of SIGTERM", "4.02s wait: idle timeout 124"},
			Check: told(procgroup.Notices{Status: "late", Dropped: 150}, "late")},
	}...)
}

// SPEC 18.2, 4.2: what a command says counts for the enclosing execution.
func TestNotifyEncloses(t *testing.T) {
	Test(t, Scenario{Name: "enclosed", Script: Script{sleeps(time.Second), says("STATUS=a\nWATCHDOG=1"), sleeps(time.Second), extends(4 * time.Second), lasts}, Options: []procgroup.Option{procgroup.Notify{Socket: true}},
		Set: func(r *Run) {
			ctx, given := r.Context, make(chan context.Context)
			go func() {
				_ = timeout.Run(ctx, func(ctx context.Context) error {
					given <- ctx
					<-ctx.Done()
					return nil
				}, timeout.Config{Idle: 2 * time.Second})
			}()
			r.Context = <-given
		},
		Want: []string{"8s 1: SIGTERM, dies of SIGTERM", "8s wait: idle timeout 124"}, Check: told(procgroup.Notices{Status: "a"}, "a"),
	})
}
