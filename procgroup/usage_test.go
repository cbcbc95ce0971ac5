//go:build linux

package procgroup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func init() { modes["eat"] = eat }

// eat has so many MiB of memory at once.
func eat(a []string) int {
	b := make([]byte, atoi(a[0])<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
	return 0
}

const work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

// SPEC 6.21: the processor time of a command, and of the children that it has waited for.
func TestUsageOfProcessor(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "sh -c '"+work+"'; true"), opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Contained == procgroup.Helper {
			if r.Usage.CPU != nil {
				t.Errorf("%v with the helper's own", *r.Usage.CPU)
			}
			return
		}
		own := r.State.UserTime() + r.State.SystemTime()
		if got := r.Usage.CPU; got == nil || *got < own*9/10 || *got > own*2+100*time.Millisecond {
			t.Errorf("%v, and the system says %v", r.Usage, own)
		}
	})
}

// SPEC 6.21: the usage of a stopped command is known if its control group counts it, and absent otherwise.
func TestUsageOfStoppedCommand(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		r, _ := atLimit(t, "ready", exec.Command("sh", "-c", "sh -c '"+work+"; echo ready; exec sleep 120' & wait"), opt, procgroup.Stop{Grace: shortGrace})
		if got := r.Usage; (got.CPU != nil) != (r.Contained == procgroup.Cgroup) || got.Largest != nil {
			t.Errorf("%v", got)
		} else if got.CPU != nil && *got.CPU < 10*time.Millisecond {
			t.Errorf("%v does not count what was killed", got)
		}
	})
}

// SPEC 6.21: the peak that the system shows for a small command is that of its big parent.
func TestUsageOfMemory(t *testing.T) {
	small, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", "true"))
	if err != nil {
		t.Fatal(err)
	}
	if small.Usage.Largest != nil {
		t.Errorf("a shell has used %v", small.Usage)
	}
	u := small.State.SysUsage().(*syscall.Rusage)
	if u.Maxrss < 5<<10 {
		t.Errorf("the shell has a peak of %d KiB: then this test shows nothing", u.Maxrss)
	}

	host := int64(u.Maxrss) >> 10 // MiB
	big := 2*host + 50
	r, err := procgroup.Run(context.Background(), command("eat", fmt.Sprint(big)))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Usage.Largest; got == nil || *got < big<<20 || *got > 2*(big+host)<<20 {
		t.Errorf("%v of %d MiB, beside a host with %d MiB", r.Usage, big, host)
	}
}

// SPEC 6.21: bytes from and to disks.
func TestUsageOfDisk(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("this kernel does not count bytes by process:", err)
	}
	cmd := exec.Command("dd", "if=/dev/zero", "of=file", "bs=1M", "count=3", "conv=fsync")
	cmd.Dir = t.TempDir()
	r, err := procgroup.Run(context.Background(), cmd, procgroup.Group)
	if err != nil {
		t.Fatal(err)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(cmd.Dir, &fs); err != nil {
		t.Fatal(err)
	}
	const tmpfs = 0x01021994
	if got := r.Usage; got.Read == nil || got.Written == nil || *got.Written < 3<<20 && fs.Type != tmpfs {
		t.Errorf("%v", got)
	}
}

func ExampleUsage_String() {
	cpu, memory, read := 1234567*time.Microsecond, int64(34<<20), int64(1000)
	fmt.Println(procgroup.Usage{CPU: &cpu, Memory: &memory, Read: &read})
	// Output: processor time 1.235s, memory 34 MiB, read 1000 bytes
}
