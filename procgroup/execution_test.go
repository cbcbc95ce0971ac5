//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The caller's attributes are kept, and not changed.
func TestAttributes(t *testing.T) {
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		attr := &syscall.SysProcAttr{Setsid: true}
		cmd := exec.Command("sh", "-c", `read -r _ _ _ _ group session _ </proc/$$/stat; echo $$ $group $session`)
		cmd.SysProcAttr = attr
		r, err := procgroup.Run(t.Context(), cmd, opt)
		check(t, r, err, want{})
		f := strings.Fields(r.Stdout.String())
		if len(f) != 3 || f[0] != f[1] || f[0] != f[2] {
			t.Errorf("pid, group and session are %v", f)
		}
		if attr.UseCgroupFD || attr.Setpgid || cmd.SysProcAttr != attr || len(cmd.Env) > 0 || cmd.Stdout != nil {
			t.Error("the command was changed")
		}
		cmd = exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: 1}
		if _, err := procgroup.Run(context.Background(), cmd, opt); err == nil {
			t.Error("a foreign group was accepted")
		}
	})
}

// SPEC 6.11: if a limit fires during the start, the start is completed and the command is then stopped.
func TestLimitDuringTheStart(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		limits := timeout.Config{Total: time.Duration(i%20+1) * 100 * time.Microsecond, Grace: 1}
		r, err := procgroup.Run(context.Background(), sleepCommand(), procgroup.Limits(limits))
		var stop *timeout.Error
		if !errors.As(err, &stop) || stop.Kind != timeout.ErrTotal {
			t.Fatalf("%v", err)
		}
		if r == nil {
			continue // the limit was before the start; that nothing lives, the suite checks
		}
		if r.ExitCode != 124 || len(undying(r.Survivors)) > 0 {
			t.Fatalf("%+v", r)
		}
	}
}
