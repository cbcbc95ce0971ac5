package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// NewLimited creates a control group with the limits l. got has the limits in force, which can be fewer than l if
// l.BestEffort is set. The error says why there can be no such group.
func NewLimited(l Limits) (c *Group, got Limits, err error) {
	own, err := ownPath()
	if err != nil {
		return nil, got, unsupported(err.Error())
	}
	mount, root, err := mountPoint()
	if err != nil {
		return nil, got, unsupported(err.Error())
	}
	rel, ok := strings.CutPrefix(own, root)
	if !ok {
		return nil, got, unsupported("this process is outside the mounted part of the cgroup hierarchy")
	}
	parent, got, why := homeFor(l, mount, rel)
	if why != nil && (!l.BestEffort || !got.Any()) {
		return nil, Limits{}, why
	}
	if c, err = makeGroup(parent); err != nil {
		return nil, Limits{}, unsupported(err.Error())
	}
	// Release moves the processes to the control group of this process, and not to parent: a control group that enables
	// controllers for those below it must have no processes.
	c.own, c.parent = strings.TrimPrefix(parent, mount), filepath.Join(mount, rel)
	if err := c.limit(got); err != nil {
		c.Discard()
		return nil, Limits{}, unsupported(err.Error())
	}
	removeLeftovers(parent)
	return c, got, nil
}

// homeFor returns the directory of the control group below which one with the limits l can be created: the group of
// this process, at mount+rel, or the one that encloses it. It enables the controllers there. got has the limits that
// are available; err says why the others are not.
//
// A group that has processes cannot enable controllers for groups below it, except for the root. So a process that
// limits others is in a leaf of its own, and the others are in leaves beside it.
func homeFor(l Limits, mount, rel string) (dir string, got Limits, err error) {
	dir = filepath.Join(mount, rel)
	if got, err = enable(dir, l); err == nil {
		return dir, got, nil
	}
	path := filepath.Clean("/" + rel)
	if path == "/" {
		return dir, got, err
	}
	around := filepath.Dir(path)
	outer := filepath.Join(mount, around)
	if !mayMakeGroups(outer, around) {
		return dir, got, fmt.Errorf("%w; and %s was not delegated to this program", err, outer)
	}
	next, nextErr := enable(outer, l)
	if nextErr == nil {
		return outer, next, nil
	}
	if err = fmt.Errorf("%w; %w", err, nextErr); !got.Any() && next.Any() {
		return outer, next, err
	}
	return dir, got, err
}

// mayMakeGroups reports whether this process may create groups in dir, the directory of the group that encloses its
// own. It may if path is "/", the topmost group that it can see, as in a container; if it does not run as root, and
// may write there; or if dir has the attribute by which systemd shows that it has delegated the group. Root may write
// everywhere, but must not create groups in systemd's slices.
func mayMakeGroups(dir, path string) bool {
	if path == "/" {
		return true
	}
	if unix.Geteuid() != 0 {
		return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil
	}
	for _, attr := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, attr, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// enable enables, for the groups below dir, the controllers that the limits l need. got has the limits whose
// controllers are enabled; err says why the others are not.
func enable(dir string, l Limits) (got Limits, err error) {
	have, readErr := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if readErr != nil {
		return got, unsupported(readErr.Error())
	}
	enabled, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	occupied := hasProcesses(dir)
	var refused []string
	try := func(controller, field string) bool {
		switch {
		case occupied == nil && slices.Contains(strings.Fields(string(enabled)), controller):
			return true
		case !slices.Contains(strings.Fields(string(have)), controller):
			err = errors.Join(err, unsupported(fmt.Sprintf("%s: there is no %s controller in %s, which has %s",
				field, controller, filepath.Join(dir, "cgroup.controllers"), listed(have))))
			return false
		case occupied != nil:
			refused = append(refused, field)
			return false
		}
		failed := writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		if failed != nil {
			err = errors.Join(err, notEnabled(field, failed))
		}
		return failed == nil
	}
	if l.Memory > 0 && try("memory", "Memory") {
		got.Memory = l.Memory
	}
	if l.Processes > 0 && try("pids", "Processes") {
		got.Processes = l.Processes
	}
	if l.CPU > 0 && try("cpu", "CPU") {
		got.CPU = l.CPU
	}
	if len(refused) > 0 {
		err = errors.Join(err, notEnabled(strings.Join(refused, ", "), occupied))
	}
	return got, err
}

// hasProcesses returns an error if controllers cannot be enabled in a group because it has processes. The kernel
// itself returns an error only for the memory controller. It would enable pids and cpu, for groups of threads,
// and after that it would start no process in the groups below. The root is exempt; it has no cgroup.type.
func hasProcesses(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err != nil {
		return nil
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || len(procs) == 0 {
		return err
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	f, err := os.OpenFile(control, os.O_WRONLY, 0)
	if err != nil { // the group belongs to another user: this matters more than the processes
		return err
	}
	f.Close()
	return &os.PathError{Op: "write", Path: control, Err: unix.EBUSY}
}

// notEnabled returns an error that says why the controller for the limit field cannot be enabled. It wraps why and
// errors.ErrUnsupported.
func notEnabled(field string, why error) error {
	if errors.Is(why, unix.EBUSY) {
		return fmt.Errorf("%s: %w: this control group has processes; a program that limits its commands has to run in a group of its own below it, "+
			"as with Delegate=yes and DelegateSubgroup= of systemd (%w)", field, why, errors.ErrUnsupported)
	}
	return fmt.Errorf("%s: %w (%w)", field, why, errors.ErrUnsupported)
}

func listed(controllers []byte) string {
	if text := string(bytes.TrimSpace(controllers)); text != "" {
		return text
	}
	return "none"
}

// cpuPeriod is the period in microseconds of the limit on processor time. It is the kernel's default.
const cpuPeriod = 100_000

// limit sets the limits of c, whose controllers must be enabled.
func (c *Group) limit(l Limits) error {
	set := func(name, value string) error { return writeFile(filepath.Join(c.dir, name), value) }
	var err error
	if l.Memory > 0 {
		err = errors.Join(err, set("memory.max", strconv.FormatInt(l.Memory, 10)))
		// Otherwise the kernel would swap out what exceeds the limit, and the whole machine would be slow.
		if swap := set("memory.swap.max", "0"); !errors.Is(swap, unix.ENOENT) {
			err = errors.Join(err, swap)
		}
	}
	if l.Processes > 0 {
		err = errors.Join(err, set("pids.max", strconv.FormatInt(l.Processes, 10)))
	}
	if l.CPU > 0 {
		err = errors.Join(err, set("cpu.max", strconv.FormatInt(int64(l.CPU*cpuPeriod), 10)+" "+strconv.Itoa(cpuPeriod)))
	}
	return err
}

// writeFile writes text to an existing file. os.WriteFile would create a missing file on another file system than
// cgroup2.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// unsupported returns an error that wraps errors.ErrUnsupported. Its text is why, followed by that of ErrUnsupported in
// parentheses.
func unsupported(why string) error { return fmt.Errorf("%s (%w)", why, errors.ErrUnsupported) }
