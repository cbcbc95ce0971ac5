package proctree

import (
	"errors"
	"fmt"
	"strconv"
)

// A Kind is a way to find and kill everything that a command has started. The names
// are those of procgroup.Containment, where they are described.
type Kind int

// The kinds.
const (
	Auto Kind = iota
	Leader
	Group
	Descendants
	Cgroup
	Helper
	HelperTree
	Job
)

var kinds = [...]string{"auto", "leader", "group", "descendants", "cgroup", "helper", "helper-tree", "job"}

// String returns the name of k, or "Containment(n)" if k is no Kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return "Containment(" + strconv.Itoa(int(k)) + ")"
	}
	return kinds[k]
}

// unavailable returns the error for a kind that was asked for by name.
func unavailable(k Kind, why error) error {
	return fmt.Errorf("procgroup: containment %v: %w", k, why)
}

// unsupported returns a reason for unavailable.
func unsupported(why string) error { return fmt.Errorf("%s (%w)", why, errors.ErrUnsupported) }

// refused returns the error for limits that are not available.
func refused(why error) error { return fmt.Errorf("procgroup: Resources: %w", why) }
