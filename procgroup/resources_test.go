//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.21: limits that cannot be had are an error at the start that says why, unless the caller takes what there is.
func TestNoResources(t *testing.T) {
	all := procgroup.Resources{Memory: 1 << 30, Processes: 1000, CPU: 1}
	best := all
	best.BestEffort = true
	for _, tc := range []struct {
		name string
		cmd  func() *exec.Cmd
		opts []procgroup.Option
		says string // in any case; "" if it depends on the machine
	}{
		{"best containment", func() *exec.Cmd { return exec.Command("true") }, nil, ""},
		{"another containment", func() *exec.Cmd { return exec.Command("true") }, []procgroup.Option{procgroup.Group}, "a control group is needed, and the containment is group"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := tc.cmd()
			r, err := procgroup.Run(context.Background(), cmd, append(tc.opts, all)...)
			switch {
			case err != nil:
				if !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "procgroup: Resources: ") || !strings.Contains(err.Error(), tc.says) || cmd.Process != nil || r != nil {
					t.Errorf("%v", err)
				}
			case tc.says != "" || r.Resources != all:
				t.Errorf("%+v", r.Resources)
			}
			r, err = procgroup.Run(context.Background(), tc.cmd(), append(tc.opts, best)...)
			check(t, r, err, want{})
			if tc.says != "" && r.Resources != (procgroup.Resources{}) {
				t.Errorf("%+v", r.Resources)
			}
		})
	}
}

// SPEC 6.10, 6.21: a command that cannot be started has its own error, with limits too.
func TestResourcesOfMissingCommand(t *testing.T) {
	_, err := procgroup.Run(context.Background(), exec.Command("/no/such/command"), procgroup.Resources{Processes: 50, BestEffort: true})
	if code := timeout.ExitCode(err); code != 127 {
		t.Errorf("%v, %d", err, code)
	}
}

// What the machine offers is taken, and the result says what that is. A program that insists leaves BestEffort out.
func ExampleResources() {
	res, err := procgroup.Run(context.Background(), exec.Command("true"),
		procgroup.Resources{Memory: 2 << 30, Processes: 500, CPU: 1.5, BestEffort: true})
	switch {
	case errors.Is(err, procgroup.OutOfMemory):
		fmt.Println(res.Message) // true ran out of memory (2 GiB).
	case err == nil && res.Resources.Memory == 0:
		// the memory is not limited here
	}
	fmt.Println(timeout.ExitCode(err))

	_, err = procgroup.Run(context.Background(), exec.Command("true"), procgroup.Resources{CPU: -1})
	fmt.Println(err)
	// Output:
	// 0
	// timeout: Resources.CPU="-1": want a number of processors from 0.01 to 10000, or 0 for no limit
}
