package proctree

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
)

// StartWithin is like Start, with limits on the resources of the tree. It returns the limits in force. If not all are
// available, it starts cmd with those that are if l.BestEffort is set, and otherwise returns an error.
func StartWithin(ctx context.Context, cmd *exec.Cmd, want Kind, l Limits) (Tree, Limits, error) {
	if !l.Any() {
		t, err := Start(ctx, cmd, want)
		return t, Limits{}, err
	}
	t, got, noCgroup, err := startLimited(cmd, want, l)
	if noCgroup == nil || err != nil {
		return t, got, err
	}
	if !l.BestEffort {
		return nil, Limits{}, refused(noCgroup)
	}
	t, err = Start(ctx, cmd, want)
	return t, Limits{}, err
}

// startLimited starts cmd in a control group with limits; got has the limits in force. noCgroup says why there can be
// no such group; cmd is then unchanged, and can be started without limits.
func startLimited(cmd *exec.Cmd, want Kind, l Limits) (t Tree, got Limits, noCgroup, err error) {
	if want != Auto && want != Cgroup {
		return nil, got, unsupported("a control group is needed, and the containment is " + want.String()), nil
	}
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.UseCgroupFD {
		return nil, got, unsupported("SysProcAttr.UseCgroupFD is set"), nil
	}
	c, got, noCgroup := cgroup.NewLimited(l)
	if noCgroup != nil {
		return nil, got, noCgroup, nil
	}
	unowned := cmd.SysProcAttr
	if err := ownGroup(cmd); err != nil {
		c.Discard()
		return nil, got, nil, err
	}
	if noCgroup, err = c.Start(cmd); noCgroup != nil {
		// The limit is too small to start any process. That is an error even with BestEffort.
		if got.Memory > 0 && errors.Is(noCgroup, unix.ENOMEM) {
			return nil, got, nil, refused(fmt.Errorf("%s: %d bytes do not suffice to start a process: %w", "Memory", got.Memory, noCgroup))
		}
		cmd.SysProcAttr = unowned // for a start without limits
		return nil, got, errors.Join(unsupported("the control group cannot be used"), noCgroup), nil
	}
	if err != nil {
		return nil, got, nil, err
	}
	return &linuxTree{leader: newLeader(cmd), kind: Cgroup, cgroup: c}, got, nil, nil
}
