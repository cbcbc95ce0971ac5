package procgroup_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func init() {
	modes["become"] = become
	hosts["unlookable"] = runModeUnlookable
}

// become becomes something that an ordinary user may not look at, after a number of milliseconds.
func become(a []string) int {
	time.Sleep(time.Duration(atoi(a[1])) * time.Millisecond)
	switch a[0] {
	case "root": // which is what sudo does
		if err := syscall.Setuid(0); err != nil {
			panic(err)
		}
	case "undumpable":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
	}
	time.Sleep(forever)
	return 0
}

// SPEC 6.6, 6.7: what an ordinary user's command leaves behind, and may not be looked at, is killed or listed, whenever it
// became so.
func TestUnlookableDescendants(t *testing.T) {
	needRoot(t)
	asNobody.Lock()
	defer asNobody.Unlock()
	dir, err := os.MkdirTemp("", "procgroup") // not TempDir, where another user cannot look
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"root", "suid", "undumpable", "capable"} {
		if err := writeProgram(dir+"/"+name, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	capability := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	capability = append(binary.LittleEndian.AppendUint32(capability, 1<<unix.CAP_NET_RAW), make([]byte, 12)...)
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.Chmod(dir+"/root", 0o755|os.ModeSetuid), os.Chmod(dir+"/suid", 0o755|os.ModeSetuid),
		unix.Setxattr(dir+"/capable", "security.capability", capability, 0),
	} {
		if err != nil {
			t.Skip("no such programs can be made:", err)
		}
	}
	rep := supervise(t, command("unlookable", dir))
	for _, pid := range rep.Unidentified { // nobody may end those
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func runModeUnlookable(a []string) int {
	if syscall.Setgid(nobody) != nil || syscall.Setuid(nobody) != nil {
		panic("it needs root")
	}
	var rep report
	for _, name := range []string{"root", "suid", "undumpable", "capable"} {
		for _, after := range []int{0, 30} {
			for _, pause := range []string{"0", "0.02", "0.15"} {
				script := fmt.Sprintf(`(setsid %s/%s %s %d >/dev/null 2>&1 & echo $!); sleep %s; exit 0`, a[0], name, name, after, pause)
				cmd := exec.Command("sh", "-c", script)
				cmd.Env = append(os.Environ(), modeEnv+"=become")
				r, err := procgroup.Run(context.Background(), cmd, procgroup.Descendants)
				if err != nil {
					rep.Errors = append(rep.Errors, err.Error())
					continue
				}
				pid, _ := strconv.Atoi(strings.TrimSpace(r.Stdout.String()))
				if alive(pid) {
					if !slices.Contains(slices.Concat(r.Survivors, r.Unidentified), pid) && len(undying([]int{pid})) > 0 {
						rep.Errors = append(rep.Errors, fmt.Sprintf("%s after %d ms, %s s: %d lives on and is not listed: %v, %v", name, after, pause, pid, r.Survivors, r.Unidentified))
					}
					rep.Unidentified = append(rep.Unidentified, pid)
				}
			}
		}
	}
	return say(rep)
}
