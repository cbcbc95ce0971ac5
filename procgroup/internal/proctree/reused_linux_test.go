package proctree

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// reusedEnv has the kind of tree for which this binary is the host.
const reusedEnv = "PROCTREE_TEST_REUSED"

// SPEC 6.6: where the kernel reaps the children of a host that ignores SIGCHLD, and has no
// signal for a group by descriptor, the id of the group may be another's at any time, and
// nobody else is hit.
func TestReusedProcessIdOfAHostThatIgnoresChildren(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to choose the next process id")
	}
	for _, kind := range []Kind{Group, Descendants} {
		if os.Getenv(reusedEnv) == kind.String() {
			hostThatIgnoresChildren(t, kind)
			return
		}
	}
	for _, kind := range []Kind{Group, Descendants} {
		reused := 0
		for try := 0; try < 20 && reused < 2; try++ {
			host := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
			host.Env = append(os.Environ(), reusedEnv+"="+kind.String())
			out, err := host.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", kind, err, out)
			}
			if strings.Contains(string(out), "reused") {
				reused++
			}
		}
		if reused == 0 {
			t.Logf("%v: the id was never given out again; other processes were faster", kind)
		}
	}
}

func hostThatIgnoresChildren(t *testing.T, kind Kind) {
	signal.Ignore(unix.SIGCHLD)
	noGroupSignal.Store(true)
	tree, err := Start(context.Background(), exec.Command("true"), kind)
	if err != nil {
		t.Fatal(err)
	}
	tree.Wait(context.Background(), time.Time{})
	pid := tree.(*linuxTree).pid
	for unix.Kill(pid, 0) == nil { // until it has been reaped
		time.Sleep(time.Millisecond)
	}
	_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0)
	bystander := exec.Command("sleep", "120")
	bystander.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Process.Kill()
	if bystander.Process.Pid == pid {
		t.Log("reused")
	}
	tree.Kill(time.Now().Add(reapTime))
	tree.Close()
	time.Sleep(20 * time.Millisecond)
	var r procfs.Reader
	if p, ok := r.Process(bystander.Process.Pid); !ok || p.Dead() {
		t.Error("a bystander was killed")
	}
}
