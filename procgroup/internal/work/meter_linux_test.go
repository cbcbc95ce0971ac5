package work

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// What ended between two looks counts once: its own was counted, and then is its parent's.
func TestGrowth(t *testing.T) {
	leader, child, grandchild := procfs.Key{PID: 10, Start: 1}, procfs.Key{PID: 11, Start: 2}, procfs.Key{PID: 12, Start: 3}
	before := map[procfs.Key]spent{
		leader:     {parent: 1, own: 5 * time.Second, children: time.Second, bytes: 100},
		child:      {parent: 10, own: 3 * time.Second, bytes: 40},
		grandchild: {parent: 11, own: 2 * time.Second, bytes: 20},
	}
	for name, tt := range map[string]struct {
		before, now map[procfs.Key]spent
		want        Usage
	}{
		"the first look":   {nil, before, Usage{CPU: 11 * time.Second, IO: 160}},
		"nothing happened": {before, before, Usage{}},
		"all work": {before, map[procfs.Key]spent{
			leader:     {parent: 1, own: 6 * time.Second, children: time.Second, bytes: 101},
			child:      {parent: 10, own: 4 * time.Second, bytes: 42},
			grandchild: {parent: 11, own: 3 * time.Second, bytes: 24},
		}, Usage{CPU: 3 * time.Second, IO: 7}},
		"a new process": {before, map[procfs.Key]spent{
			leader: before[leader], child: before[child], grandchild: before[grandchild],
			{PID: 13, Start: 4}: {parent: 12, own: time.Second, bytes: 9},
		}, Usage{CPU: time.Second, IO: 9}},
		"the child was waited for, after another second": {before, map[procfs.Key]spent{
			leader:     {parent: 1, own: 5 * time.Second, children: 5 * time.Second, bytes: 141},
			grandchild: {parent: 1, own: 2 * time.Second, bytes: 20},
		}, Usage{CPU: time.Second, IO: 1}},
		"grandchild and child were, each after another second": {before, map[procfs.Key]spent{
			leader: {parent: 1, own: 5 * time.Second, children: 8 * time.Second, bytes: 163},
		}, Usage{CPU: 2 * time.Second, IO: 3}},
		"nobody waits for the child": {before, map[procfs.Key]spent{
			leader: {parent: 1, own: 6 * time.Second, children: time.Second, bytes: 100}, grandchild: before[grandchild],
		}, Usage{CPU: time.Second, IO: 0}},
		"page faults, with those of a child that was waited for": {
			map[procfs.Key]spent{leader: {parent: 1, faults: 100}, child: {parent: 10, faults: 50}},
			map[procfs.Key]spent{leader: {parent: 1, faults: 170}}, Usage{Faults: 20}},
		"another process with the same id": {before, map[procfs.Key]spent{
			leader: before[leader], child: before[child], {PID: 12, Start: 9}: {parent: 11, own: time.Second, bytes: 3},
		}, Usage{CPU: time.Second, IO: 3}},
	} {
		if diff := cmp.Diff(tt.want, growth(tt.before, tt.now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The process that was worst off says how much of the time none could work.
func TestStarved(t *testing.T) {
	begun := time.Now()
	at := func(s time.Duration, waited time.Duration) spent {
		return spent{at: begun.Add(s * time.Second), waited: waited * time.Second}
	}
	old, other, young := procfs.Key{PID: 10, Start: 1}, procfs.Key{PID: 11, Start: 2}, procfs.Key{PID: 12, Start: 3}
	before := map[procfs.Key]spent{old: at(0, 100), other: at(1, 0)}
	for name, tt := range map[string]struct {
		now  map[procfs.Key]spent
		want float64
	}{
		"nothing is there":        {nil, 0},
		"nobody waited":           {map[procfs.Key]spent{old: at(4, 100), other: at(5, 0)}, 0},
		"one did":                 {map[procfs.Key]spent{old: at(4, 101), other: at(5, 0)}, 0.25},
		"another more":            {map[procfs.Key]spent{old: at(4, 101), other: at(5, 2)}, 0.5},
		"one that is new":         {map[procfs.Key]spent{young: at(4, 3)}, 0.75},
		"the clocks do not agree": {map[procfs.Key]spent{old: at(4, 105)}, 1},
		"at once":                 {map[procfs.Key]spent{old: at(0, 101)}, 0},
	} {
		if got := starved(before, tt.now, begun); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A grouped is a tree in a control group.
type grouped struct{ group *cgroup.Group }

func (g grouped) Group() *cgroup.Group     { return g.group }
func (grouped) Helper() int                { return 0 }
func (grouped) Patience() *procfs.Patience { return procfs.NewPatience(time.Second) }
func (grouped) Members(func(procfs.Key) bool) (members []procfs.Process, late, hidden []procfs.Key, complete bool) {
	return nil, nil, nil, false
}

// A look at a control group is not ok where what it needs cannot be read, and the next one then covers
// that, too. The group is a directory with its files.
func TestMeterOfGroup(t *testing.T) {
	dir := t.TempDir()
	group, err := cgroup.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	self := strconv.Itoa(os.Getpid())
	type files map[string]string
	type answer struct {
		Used Usage
		OK   bool
	}
	for name, tt := range map[string]struct {
		io    bool
		looks []files
		want  []answer
	}{
		"processor time": {false,
			[]files{{"cpu.stat": "usage_usec 2000\nuser_usec 1\n"}, {}, {"cpu.stat": "usage_usec 5000\n"}},
			[]answer{{Usage{CPU: 2 * time.Millisecond}, true}, {}, {Usage{CPU: 3 * time.Millisecond}, true}}},
		"processor time of members is none of the group's": {false,
			[]files{{"cgroup.procs": self}}, []answer{{}}},
		"bytes, and no member is ever seen": {true,
			[]files{{"io.stat": "8:0 rbytes=1 wbytes=2\n"}, {"io.stat": "8:0 rbytes=1 wbytes=2\n"}, {"io.stat": "8:0 rbytes=5 wbytes=2\n"}},
			[]answer{{Usage{IO: 3}, true}, {OK: true}, {Usage{IO: 4}, true}}},
		"nothing can be read": {true, []files{{}}, []answer{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			look := MeterOf(grouped{group}, tt.io)
			for i, files := range tt.looks {
				for _, file := range []string{"cpu.stat", "io.stat", "cgroup.procs"} {
					_ = os.Remove(filepath.Join(dir, file))
					if text, ok := files[file]; ok {
						if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				used, ok := look()
				if diff := cmp.Diff(tt.want[i], answer{used, ok}); diff != "" {
					t.Errorf("look %d: %s", i, diff)
				}
			}
		})
	}
}

// A page fault takes some time on every machine, and on none a millisecond.
func TestFaultCost(t *testing.T) {
	if c := faultCost(); c <= 0 || c > time.Millisecond {
		t.Error(c)
	}
}

// SPEC 6.12: a member that waits while a child of it runs is starting programs, if it has had page faults.
func TestStarts(t *testing.T) {
	const runs, sleeps = "while :; do :; done & wait", "sleep 60 & wait"
	for _, tt := range []struct {
		name, script string
		faults       uint64
		want         bool
	}{{"a child that runs", runs, 1, true}, {"without a fault", runs, 0, false}, {"a child that sleeps", sleeps, 1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", tt.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			}()
			reader := procfs.Unhurried()
			var member procfs.Process
			harness.Eventually(t, "that it waits", func() bool {
				member, _ = reader.Process(cmd.Process.Pid)
				return member.State == 'S' && len(reader.Children(member.PID)) > 0
			})
			m := &meter{reader: reader}
			harness.Eventually(t, "what it starts", func() bool { // what is to sleep runs until its exec
				return m.starts(map[procfs.Key]spent{member.Key(): {faults: tt.faults}}) == tt.want
			})
		})
	}
}
