package proctree

import (
	"bufio"
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process belongs to a command also after an exec without its cookie, for looks at work.
func TestRecall(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 120 & echo; read x; kill -KILL $!; wait; exec env -i sh -c 'sleep 120 & echo $!; exec sleep 120'")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Start(context.Background(), cmd, Descendants)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		tree.Kill(time.Now().Add(10 * time.Second))
		tree.Close()
	}()
	lines := bufio.NewScanner(out)
	line := func() string {
		if !lines.Scan() {
			t.Fatal("the shell has ended:", lines.Err())
		}
		return lines.Text()
	}
	d := tree.(*linuxTree).others
	withCookie := func(all []proc) (pids []int) {
		for _, p := range all {
			if strings.Contains(p.cookies, d.cookie) {
				pids = append(pids, p.pid)
			}
		}
		return pids
	}
	leader := d.leader.pid

	line()
	both := withCookie(recall())
	for until := time.Now().Add(10 * time.Second); len(both) < 2 && time.Now().Before(until); both = withCookie(recall()) {
		time.Sleep(time.Millisecond) // in the middle of an exec the child shows no environment
	}
	if len(both) != 2 || !slices.Contains(both, leader) {
		t.Fatalf("with the cookie: %v, want the shell, %d, and its child", both, leader)
	}
	child := both[1-slices.Index(both, leader)]

	_, _ = in.Write([]byte("\n"))
	without := number([]byte(line()))
	if pids := withCookie(scan()); len(pids) > 0 {
		t.Fatalf("with the cookie, after env -i: %v", pids)
	}
	all := recall()
	if pids := withCookie(all); !slices.Equal(pids, []int{leader}) {
		t.Errorf("remembered: %v, want %d", pids, leader)
	}
	if !slices.ContainsFunc(all, func(p proc) bool { return p.pid == int(without) && p.ppid == leader && p.cookies == "" }) {
		t.Errorf("%d, begun since, is missing", without)
	}
	for key := range remembered {
		if key.pid == child {
			t.Errorf("%d has ended, and is remembered", child)
		}
	}
	if _, ok := remembered[procKey{unix.Getpid(), hostStart()}]; ok {
		t.Error("this process is remembered")
	}
}
