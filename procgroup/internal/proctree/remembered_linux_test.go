package proctree

import (
	"bufio"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Looks at work (SPEC 6.12) read the environment of a process once, and after an exec again.
func TestRecall(t *testing.T) {
	tree, _, in, out := startPerl(t, Descendants, `$| = 1;
		my $child = fork; exec "sleep", 120 if !$child;
		<STDIN>; print "1\n"; <STDIN>;
		kill "KILL", $child; wait; $0 = "x" x 9000; # which overwrites its environment
		print "2\n"; <STDIN>;
		exec "env", "-i", "sh", "-c", "echo 3; exec sleep 120"`)
	lines := bufio.NewScanner(out)
	next := func() {
		_, _ = in.Write([]byte("\n"))
		if !lines.Scan() {
			t.Fatal("perl has ended:", lines.Err())
		}
	}
	d := tree.(*linuxTree).others
	leader := d.leader.pid
	among := func(all []proc) (members []procfs.Key) {
		if !slices.ContainsFunc(all, func(p proc) bool { return p.PID == leader }) {
			t.Fatalf("%d is missing", leader)
		}
		for _, p := range all {
			if strings.Contains(p.cookies, d.cookie) {
				members = append(members, p.Key())
			}
		}
		return members
	}
	is := func(key procfs.Key) bool { return key.PID == leader }

	next()
	both := among(recall())
	for until := time.Now().Add(time.Minute); len(both) < 2 && time.Now().Before(until); both = among(recall()) {
		time.Sleep(time.Millisecond) // in the middle of an exec there is no environment
	}
	if len(both) != 2 || !slices.ContainsFunc(both, is) {
		t.Fatalf("with the cookie: %v, want perl, %d, and its child", both, leader)
	}
	child := both[1-slices.IndexFunc(both, is)]

	next()
	if anew, known := among(scan(fullPatience)), among(recall()); len(anew) > 0 || len(known) != 1 || !is(known[0]) {
		t.Errorf("the environment is overwritten: %v anew, %v remembered, want none and %d", anew, known, leader)
	}
	for p := range remembered {
		if p.Key == child {
			t.Errorf("%d has ended, and is remembered", child.PID)
		}
	}

	next()
	if known := among(recall()); len(known) > 0 {
		t.Errorf("after an exec without the cookie: %v", known)
	}
}
