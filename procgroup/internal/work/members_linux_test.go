package work

import (
	"os"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A listing is a tree without a control group, as one look finds it.
type listing struct {
	other        procfs.Process // is always listed, since a tree without members is not looked at
	members      []procfs.Process
	late, hidden []procfs.Key
	complete     bool
}

func (*listing) Group() *cgroup.Group       { return nil }
func (*listing) Helper() int                { return 0 }
func (*listing) Patience() *procfs.Patience { return procfs.NewPatience(time.Minute) }
func (l *listing) Members(known func(procfs.Key) bool) (members []procfs.Process, late, hidden []procfs.Key, complete bool) {
	for _, key := range append(l.late, l.hidden...) {
		if !known(key) {
			return nil, nil, nil, false
		}
	}
	return append([]procfs.Process{l.other}, l.members...), l.late, l.hidden, l.complete
}

// SPEC 6.12: a member that a look does not list has left only if the look lists all, and nothing says that it may be one.
// The member here is this process, and another one its parent.
func TestMemberThatHasLeft(t *testing.T) {
	self, ok := procfs.Unhurried().Process(os.Getpid())
	parent, ok2 := procfs.Unhurried().Process(os.Getppid())
	if !ok || !ok2 {
		t.Skip("/proc does not show them")
	}
	key, listed := []procfs.Key{self.Key()}, listing{members: []procfs.Process{self}, complete: true}
	for name, tt := range map[string]struct {
		looks []listing
		left  bool
	}{
		"listed":                    {[]listing{listed}, false},
		"not listed":                {[]listing{{complete: true}}, true},
		"not all are":               {[]listing{{}}, false},
		"late":                      {[]listing{{late: key, complete: true}, {late: key, complete: true}}, false},
		"in the middle of an exec":  {[]listing{{hidden: key, complete: true}}, false},
		"without an environment":    {[]listing{{hidden: key, complete: true}, {hidden: key, complete: true}}, true},
		"hidden, listed and hidden": {[]listing{{hidden: key, complete: true}, listed, {hidden: key, complete: true}}, false},
	} {
		tree := listed
		tree.other = parent
		m := &meter{tree: &tree, reader: procfs.Unhurried(), looked: time.Now()}
		if used, ok := m.look(); !ok || used.CPU == 0 || m.members[self.Key()].waited == 0 {
			t.Fatalf("%s: %+v, %v", name, used, ok)
		}
		for _, tree = range tt.looks {
			tree.other = parent
			m.look()
		}
		if _, is := m.members[self.Key()]; is == tt.left {
			t.Errorf("%s: a member: %v", name, is)
		}
	}
}
