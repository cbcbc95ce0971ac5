//go:build linux

package procgroup_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func init() {
	modes["mapper"] = mapper
	modes["spinner"] = spinner
}

// onFirst lets this process run on one processor alone, the first that it may use.
func onFirst() {
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		panic(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if may.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if err := unix.SchedSetaffinity(atoi(thread.Name()), &one); err != nil && err != unix.ESRCH {
			panic(err)
		}
	}
}

func spinner([]string) int {
	onFirst()
	for begun := time.Now(); time.Since(begun) < forever; {
	}
	return 0
}

// mapper changes its memory map all the time, with the lowest priority there is.
func mapper(a []string) int {
	onFirst()
	for range 3 {
		go func() {
			runtime.LockOSThread()
			if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 5, uintptr(unsafe.Pointer(new(int32)))); errno != 0 { // SCHED_IDLE
				panic(errno)
			}
			for {
				b, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
				if err != nil {
					panic(err)
				}
				_ = unix.Munmap(b)
			}
		}()
	}
	time.Sleep(forever)
	return 0
}

// prefer lets a process run anywhere again, as others do, so that it has the time to die.
func prefer(pid int) {
	var all unix.CPUSet
	for cpu := range runtime.NumCPU() {
		all.Set(cpu)
	}
	threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	for _, thread := range threads {
		tid := atoi(thread.Name())
		_ = unix.SchedSetaffinity(tid, &all)
		_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), 0, uintptr(unsafe.Pointer(new(int32)))) // SCHED_OTHER
	}
}

// SPEC 6.11: where a process gets too little processor time to let its environment be read, as a
// nice one on a busy machine does, that delays neither a look at a command nor its end.
func TestLowPriority(t *testing.T) {
	needSoak(t)
	for _, mode := range []string{"mapper", "spinner", "spinner"} {
		cmd := command(mode)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { // the mapper last
			_ = cmd.Process.Kill()
			prefer(cmd.Process.Pid)
			_ = cmd.Wait()
		}()
	}
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		{
			begun := time.Now()
			r, err := stopWhen(t, func() bool { return time.Since(begun) > 300*time.Millisecond }, exec.Command("sh", "-c", "setsid sleep 120 & wait"), opt,
				procgroup.WithLimits(timeout.Config{Idle: longLimit}), procgroup.Activity{CPU: true, IO: true})
			if r == nil || r.Reason != procgroup.Aborted || len(undying(r.Survivors)) > 0 {
				t.Errorf("%v, %+v", err, r)
			}
		}
	})
}
