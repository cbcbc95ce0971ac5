package proctree

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// SPEC 6.6: what ignores the stop signal is killed after the grace, even if os/exec has reaped the leader, and the
// kernel cannot signal a group by a descriptor.
func TestAttachAfterTheLeaderWithoutGroupSignal(t *testing.T) {
	noGroupSignal.Store(true)
	defer noGroupSignal.Store(false)
	const deaf = `deaf() { trap "" TERM; sh -c 'echo $PPID'; while :; do sleep 0.05; done; }; `
	for name, tt := range map[string]struct {
		kind   Kind
		script string
	}{
		"group":                       {Group, `(trap "" TERM; echo; deaf) & wait`},
		"a member without its cookie": {Auto, `env -i PATH="$PATH" sh -c 'trap "" TERM; echo; sh -c "echo \$PPID"; while :; do sleep 0.05; done' & wait`},
		"a member that begins later":  {Group, `(trap 'sleep 0.05; deaf & sleep 0.1; exit' TERM; echo; while :; do sleep 0.05; done) & wait`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", deaf+tt.script)
			grace, err := Attach(cmd, tt.kind, unix.SIGTERM, 500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = in
			err = cmd.Start()
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // only what the library has left
			lines := bufio.NewReader(out)
			_, _ = lines.ReadString('\n')
			begun := time.Now()
			cancel()
			_ = cmd.Wait()
			line, _ := lines.ReadString('\n')
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the member to be killed", func() bool {
				p := procfs.StatusOf(pid)
				return p.Known && (!p.There || p.Dead())
			})
			if d := time.Since(begun); d < grace {
				t.Errorf("it was killed after %v", d)
			}
		})
	}
}

// SPEC 6.6: a group without any of the known members may be another's, and is not signalled.
func TestAttachSparesAnotherGroup(t *testing.T) {
	bystander := exec.Command("sleep", "120")
	bystander.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	pid := bystander.Process.Pid
	a := &attached{leader: &leader{pid: pid, reaped: true}, members: map[procfs.Key]bool{{PID: pid, Start: 1}: true}}
	a.finish(time.Now())
	if err := a.signalGroup(unix.SIGKILL); err != unix.EINVAL {
		t.Errorf("error %v", err)
	}
	_ = bystander.Process.Signal(unix.SIGTERM)
	if state, err := bystander.Process.Wait(); err != nil || state.String() != "signal: terminated" {
		t.Errorf("a bystander was killed: %v, %v", state, err)
	}
}
