package proctree

import (
	"errors"
	"fmt"
	"strconv"
)

// A Kind is a containment: the means by which a Tree finds and kills the processes of a command.
type Kind int

// The kinds have the names of the values of procgroup.Containment, where they are described.
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

// String returns the name of k, or "Containment(n)" for a value n other than the constants.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return "Containment(" + strconv.Itoa(int(k)) + ")"
	}
	return kinds[k]
}

// unavailable returns an error that says that the requested containment k cannot be used. It wraps why.
func unavailable(k Kind, why error) error {
	return fmt.Errorf("procgroup: containment %v: %w", k, why)
}

// unsupported returns an error that wraps errors.ErrUnsupported. Its text is why, followed by that of ErrUnsupported in
// parentheses.
func unsupported(why string) error { return fmt.Errorf("%s (%w)", why, errors.ErrUnsupported) }

// refused returns an error that says that the requested Limits cannot be set. It wraps why.
func refused(why error) error { return fmt.Errorf("procgroup: Resources: %w", why) }
