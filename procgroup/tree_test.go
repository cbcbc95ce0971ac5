//go:build linux

package procgroup_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// family3 is a shell that waits for another, which waits for a sleep; and a zombie.
const family3 = `sh -c 'sleep 121; :' & sh -c : & exec sleep 120`

// SPEC 6.12: a picture of the tree of a stopped command is in the result, in the error in place of a stack, and in the log.
func TestTree(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		t.Parallel()
		var log logBuffer
		mock := clock.NewMock()
		cmd := exec.Command("sh", "-c", family3)
		p, err := procgroup.Start(t.Context(), cmd, containment, procgroup.Stop{Grace: -1}, procgroup.Limits{Idle: limit},
			procgroup.WithOptions(timeout.WithClock(mock), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the family", func() bool {
			return slices.Equal(shells(cmd.Process.Pid), []string{"sh S", "sh Z", "sleep S", "sleep S"})
		})
		mock.Add(limit)
		r, err := p.Wait()
		var stop *timeout.Error
		if r == nil || !errors.As(err, &stop) {
			t.Fatal(err)
		}
		tree := r.Tree
		index := func(state, command string) int {
			return slices.IndexFunc(tree.Processes, func(p procgroup.ProcessInfo) bool {
				return p.State == state && strings.Join(p.Args, " ") == command
			})
		}
		leader, shell, child, zombie := index("sleeping", "sleep 120"), index("sleeping", "sh -c sleep 121; :"), index("sleeping", "sleep 121"), index("zombie", "[sh]")
		if tree.Truncated { // the machine is too busy to show it in time, which is said
			return
		}
		if len(tree.Processes) != 4 || min(leader, shell, child, zombie) < 0 {
			t.Fatalf("got\n%+v", tree)
		}
		if all := tree.Processes; all[shell].Parent != all[leader].Pid || all[child].Parent != all[shell].Pid || child != shell+1 || leader != 0 {
			t.Errorf("parents\n%v", tree)
		}
		if p := tree.Processes[leader]; p.Age <= 0 || p.CPU <= 0 || p.CPU > p.Age {
			t.Errorf("age %v, processor time %v", p.Age, p.CPU)
		}
		text := tree.String()
		if string(stop.Stack) != text || !strings.HasSuffix(fmt.Sprintf("%+v", err), text) || fmt.Sprintf("%+v", tree) != text {
			t.Errorf("stack\n%s\nin place of\n%s", stop.Stack, text)
		}
		if !strings.Contains(text, "    sleep 121\n") {
			t.Errorf("not indented\n%s", text)
		}
		if n := strings.Count(log.String(), "PID"); n != 1 {
			t.Errorf("the log has the tree %d times\n%s", n, &log)
		}
	})
}

// A tree of any size, and arguments of any length, are cut.
func TestTreeIsBounded(t *testing.T) {
	t.Parallel()
	script := "i=0; while [ $i -lt 99 ]; do sleep 120 & i=$((i+1)); done; exec perl -e '$| = 1; print \"ready\"; sleep 120' " + strings.Repeat("ä", 10000)
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		t.Parallel()
		r, err := atLimit(t, "ready", exec.Command("sh", "-c", script), containment, procgroup.Stop{Grace: -1})
		if len(r.Tree.Processes) != 64 || !r.Tree.Truncated {
			t.Fatalf("%v\n%v", err, r)
		}
		args := strings.Join(r.Tree.Processes[0].Args, "")
		if args == "[perl]" { // likewise
			return
		}
		if len(args) > 260 || !strings.HasSuffix(args, "ää…") {
			t.Errorf("%q", args)
		}
	})
}

// shells are the names and states of a process and of those below it, sorted, without the helper.
func shells(pid int) (all []string) {
	every := processes()
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if text := strings.TrimSpace(string(name)); text == "sh" || text == "sleep" {
		all = append(all, text+" "+every[pid].state)
	}
	for id, stat := range every {
		if stat.ppid == pid {
			all = append(all, shells(id)...)
		}
	}
	slices.Sort(all)
	return all
}
