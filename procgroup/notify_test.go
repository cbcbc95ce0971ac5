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

// SPEC 18.2: what the simulation does not see, such as the channels, and how fast a flood is read. That heartbeats and
// extensions count, to the nanosecond, is for the rule notices there.
func TestNotify(t *testing.T) {
	const s, ns = time.Second, time.Nanosecond
	socket := procgroup.Notify{Socket: true}
	idle := func(at string) []string {
		return []string{at + " 1: SIGTERM, dies of SIGTERM", at + " wait: idle timeout 124"}
	}
	none := told(procgroup.Notices{}, nil)
	Test(t, []Scenario{
		{Name: "without the option", Script: Script{sleeps(s), says("READY=1\nWATCHDOG=1"), lasts},
			Options: []procgroup.Option{limits(0, 2*s)}, Want: idle("2s"), Check: none},
		{Name: "a heartbeat lengthens no total", Script: Script{sleeps(s), says("WATCHDOG=1"), says("EXTEND_TIMEOUT_USEC=60000000"), lasts},
			Options: []procgroup.Option{socket, limits(2*s, 2*s)}, Want: []string{"2s 1: SIGTERM, dies of SIGTERM", "2s wait: total timeout 124"}, Check: none},
		{Name: "a status is no heartbeat", Script: Script{sleeps(s), says("STATUS=step 1"), lasts},
			Options: []procgroup.Option{socket, limits(0, 2*s)}, Want: idle("2s"), Check: told(procgroup.Notices{Status: "step 1"}, "step 1")},
		{Name: "states", Script: Script{says("READY=1\nSTATUS=up"), sleeps(s), says("STOPPING=1\nSTATUS=down"), exits(1)},
			Options: []procgroup.Option{socket}, Want: []string{"1s 1: exit 1", "1s wait: exited 1"},
			Check: told(procgroup.Notices{Ready: true, Stopping: true, Status: "down"}, nil),
			Events: []Event{{At: s / 2, Do: func(r *Run) {
				select {
				case <-r.Process.Ready():
				default:
					r.Error("not ready")
				}
				<-r.Process.Stopping()
			}}}},
		{Name: "states during the grace", Script: Script{traps(15, says("STOPPING=1"), sleeps(s), exits(0)), lasts},
			Options: []procgroup.Option{socket, limits(2*s, 0)}, Want: []string{"2s 1: SIGTERM, SIGCONT", "3s 1: exit 0", "3s wait: total timeout 124"},
			Check: told(procgroup.Notices{Stopping: true}, nil)},
		{Name: "a flood is dropped and counted", Script: Script{sleeps(s), {Do: Say, N: 250, Text: "WATCHDOG=1"}, says("X=1"), sleeps(s), says("READY=1"), lasts},
			Options: []procgroup.Option{socket, limits(0, 3*s)}, Want: idle("4.02s"), Check: told(procgroup.Notices{Ready: true, Dropped: 148}, nil)},
		{Name: "a heartbeat counts in a flood", Script: Script{sleeps(s), {Do: Say, N: 250, Text: "X=1"}, says("STATUS=late\nWATCHDOG=1"), lasts},
			Options: []procgroup.Option{socket, limits(0, 3*s)}, Want: idle("4.02s"), Check: told(procgroup.Notices{Status: "late", Dropped: 150}, "late")},
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
