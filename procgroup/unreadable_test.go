//go:build linux

package procgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func init() {
	modes["opaque"] = opaque
	modes["parentOfOpaque"] = parentOfOpaque
}

// opaque is a process whose environment and arguments nobody can read: it has given a page of
// each back, and does not look after its page faults.
func opaque(a []string) int {
	ready := strings.Clone(a[0]) // it is in the pages
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		panic(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):])) // the third is [1]
	uffd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		panic(errno)
	}
	const api, register = 0xc018aa3f, 0xc020aa00
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uffd, api, uintptr(unsafe.Pointer(&[3]uint64{0xaa}))); errno != 0 {
		panic(errno)
	}
	page := uint64(os.Getpagesize())
	for _, first := range []int{48, 50} { // arg_start, arg_end, env_start, env_end
		start, err := strconv.ParseUint(fields[first-2], 10, 64)
		if err != nil {
			panic(err)
		}
		start = (start + page - 1) / page * page
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uffd, register, uintptr(unsafe.Pointer(&[4]uint64{start, page, 1}))); errno != 0 {
			panic(errno)
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(page), unix.MADV_DONTNEED); errno != 0 {
			panic(errno)
		}
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		panic(err)
	}
	time.Sleep(forever)
	return 0
}

func there(file string) func() bool {
	return func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
}

func opaqueCommand(ready string) *exec.Cmd {
	cmd := command("opaque", ready, strings.Repeat("a", 4*os.Getpagesize()))
	// In front, so that it is what the second page has.
	cmd.Env = append([]string{"PADDING=" + strings.Repeat("e", 4*os.Getpagesize())}, cmd.Env...)
	return cmd
}

// parentOfOpaque waits for its opaque child, which is in its group or in a session of its own.
func parentOfOpaque(a []string) int {
	cmd := opaqueCommand(a[1])
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: a[0] == "away"}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	time.Sleep(forever)
	return 0
}

// userfaultfd(2) is for root alone, as a rule.
func needOpaque(t *testing.T) {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		t.Skip("no userfaultfd:", errno)
	}
	unix.Close(int(fd))
}

// SPEC 6.6: a member that shows no environment is known by its parent, and is so when that has been
// killed first.
func TestOpaqueProcess(t *testing.T) {
	t.Parallel()
	needOpaque(t)
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		for _, where := range []string{"group", "away"} {
			ready := filepath.Join(t.TempDir(), "ready")
			cmd, pids := family(t, "parentOfOpaque", where, ready)
			r, err := stopWhen(t, there(ready), cmd, opt)
			if r == nil || r.Reason != procgroup.Aborted || len(undying(r.Survivors)) > 0 || len(pids()) != 2 {
				t.Errorf("%s: %v, %+v", where, err, r)
			}
			mustBeDead(t, pids())
		}
	})
}
