//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// This file holds what a busy machine must not change: SPEC 6.14. The collectors of the
// output may then not run for a long time after a command has ended. The simulation proves it; this is the long form.

// A consumer is a writer that takes its time for each chunk.
type consumer struct {
	bytes.Buffer
	pause time.Duration
}

func (c *consumer) Write(p []byte) (int, error) {
	time.Sleep(c.pause)
	return c.Buffer.Write(p)
}

// runMany runs a shell script n times at once, with its number as $1 and a consumer for
// its output, which must be the number and then what the script has after it.
func runMany(n int, script, after string, pause time.Duration, held bool, opts ...procgroup.Option) (errs []string) {
	opts = append([]procgroup.Option{procgroup.WithKillGrace(longLimit)}, opts...)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			cmd := exec.Command("sh", "-c", script, "sh", strconv.Itoa(i))
			c := consumer{pause: pause}
			if pause > 0 {
				cmd.Stdout = &c
			}
			r, err := procgroup.Run(context.Background(), cmd, opts...)
			want := strconv.Itoa(i) + "\n" + after
			var wrong string
			switch {
			case err != nil:
				wrong = err.Error()
			case r.Stdout.String() != want:
				wrong = fmt.Sprintf("%d bytes of output kept, held %v", len(r.Stdout.Bytes()), r.PipeHeld)
			case pause > 0 && c.String() != want:
				wrong = fmt.Sprintf("%d bytes of output written, held %v", c.Len(), r.PipeHeld)
			case r.PipeHeld != held:
				wrong = fmt.Sprintf("pipe held: %v", r.PipeHeld)
			case r.Unwritten > 0:
				wrong = fmt.Sprintf("%d bytes not written", r.Unwritten)
			}
			if wrong != "" {
				mu.Lock()
				errs = append(errs, fmt.Sprintf("command %d: %s", i, wrong))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errs
}

// A host that has a tenth of one core.
func TestThrottled(t *testing.T) {
	needSoak(t)
	t.Parallel()
	for _, mode := range []string{"chunk", "slow", "orphans", "cgroup"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode == "cgroup" {
				needCgroup(t)
			}
			dir := throttle(t)
			supervise(t, command("throttled", dir, mode))
		})
	}
}

// throttle makes a control group whose processes have a tenth of a core together.
func throttle(t *testing.T) (procs string) {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup/cpu", "procgroup-test-"+strconv.Itoa(os.Getpid())+"-"+filepath.Base(t.Name()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("needs root and the cpu controller of cgroup v1: ", err)
	}
	t.Cleanup(func() {
		for begun := time.Now(); os.Remove(dir) != nil && time.Since(begun) < time.Minute; {
			time.Sleep(20 * time.Millisecond)
		}
	})
	for name, value := range map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			t.Skip("needs the cpu controller: ", err)
		}
	}
	return filepath.Join(dir, "cgroup.procs")
}

// runModeThrottled supervises commands with next to no processor time.
func runModeThrottled(a []string) int {
	if err := os.WriteFile(a[0], []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		panic(err)
	}
	var rep report
	switch a[1] {
	case "chunk":
		rep.Errors = runMany(80, "echo $1; sleep 1", "", 0, false)
	case "slow":
		rep.Errors = runMany(5, "echo $1; head -c 150000 /dev/zero", strings.Repeat("\x00", 150000), 40*time.Millisecond, false)
	case "orphans":
		rep.Errors = runMany(50, "echo $1", "", 40*time.Millisecond, false, procgroup.WithOrphans())
	case "cgroup":
		rep.Errors = runMany(50, "echo $1; sleep 1", "", 0, false, procgroup.WithContainment(procgroup.Cgroup))
	}
	return say(rep)
}
