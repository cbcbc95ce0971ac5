package proctree

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// The usage of a child counts once, at whichever moment of a look its parent waits for it. Here many end one
// after the other while looks are made: none of these may find what the children had used before.
func TestChildrenReapedDuringALook(t *testing.T) {
	if err := work.CanMeter(true); err != nil {
		t.Skip(err)
	}
	const children, much = 60, 8 << 20
	tree, _, in, out := startPerl(t, Group, `$| = 1;
		for (1..`+strconv.Itoa(children)+`) {
			pipe my $r, my $w;
			if (!fork) {
				close $w; close $_ for @w;
				open F, "/dev/zero"; sysread F, $b, `+strconv.Itoa(much)+`; print "x";
				sysread $r, $b, 1; exit;
			}
			push @w, $w;
		}
		<STDIN>;
		while (@w) { close shift @w; wait }
		print "y"; sleep 120`)
	if _, err := io.ReadFull(out, make([]byte, children)); err != nil {
		t.Fatal(err)
	}
	look := tree.Meter(true)
	for before := uint64(0); before < children*much; { // a busy machine may not tell at once
		used, _ := look()
		before += used.IO
	}
	over := make(chan error, 1)
	in.Close()
	go func() {
		_, err := io.ReadFull(out, make([]byte, 1))
		over <- err
	}()
	looks := 0
	for ended := false; !ended; looks++ {
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		default:
		}
		if used, ok := look(); ok && used.IO >= much {
			t.Errorf("look %d: %d bytes", looks, used.IO)
		}
	}
}

// SPEC 6.12: the work of each process that a containment finds is measured, and that of no other one.
func TestMeterOfContainments(t *testing.T) {
	const member = `if (fork) { sleep 1000 }`
	const daemon = `use POSIX "setsid"; if (fork) { wait; sleep 1000 } setsid; exit if fork;`
	for name, tt := range map[string]struct {
		io     bool
		who    string
		work   string
		within []Kind
	}{
		"a child computes":  {false, member, `while (1) { $i++ for 1..100000; select undef, undef, undef, .005 }`, []Kind{Group, Descendants, Cgroup}},
		"a daemon computes": {false, daemon, `while (1) { $i++ for 1..100000; select undef, undef, undef, .005 }`, []Kind{Descendants, Cgroup}},
		"a daemon reads":    {true, daemon, `open F, "/dev/zero"; while (1) { sysread F, $b, 20000; select undef, undef, undef, .005 }`, []Kind{Descendants, Cgroup}},
	} {
		for _, kind := range tt.within {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				t.Parallel()
				if err := work.CanMeter(tt.io); err != nil {
					t.Skip(err)
				}
				if kind == Cgroup {
					c, err := cgroup.New()
					if err != nil {
						t.Skip(err)
					}
					c.Remove(time.Now().Add(time.Minute))
					c.Close()
				}
				tree, _, _, _ := startPerl(t, kind, tt.who+tt.work)
				look := tree.Meter(tt.io)
				var total work.Usage
				harness.Eventually(t, "more work than a start takes", func() bool {
					used, _ := look()
					total.CPU, total.IO = total.CPU+used.CPU, total.IO+used.IO
					return total.CPU > 100*time.Millisecond || total.IO > 1<<20
				})
			})
		}
	}
}
