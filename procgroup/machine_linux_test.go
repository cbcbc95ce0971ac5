package procgroup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// machineEnv is "scratch" on a machine that nobody else uses, where tests may change settings of the system.
const machineEnv = "PROCGROUP_TEST_MACHINE"

func needMachine(t *testing.T) {
	t.Helper()
	if os.Getenv(machineEnv) != "scratch" {
		t.Skip(`changes settings of the system; "make vm" runs it on an emulated machine`)
	}
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	nobody     = 65534
)

func init() {
	hosts["host"] = hostMode
	hosts["container"] = containerMode
	hosts["askInput"] = askInput
}

// A hostAnswer is what a host has got for a command with limits.
type hostAnswer struct {
	Err         string
	Unsupported bool
	Reason      procgroup.Reason
	Message     string
	ExitCode    int
	Resources   procgroup.Resources
	Group       string // the control group of the command
}

// hostMode is a host that runs a command with the limits in its first argument.
func hostMode(a []string) int {
	var r procgroup.Resources
	if err := json.Unmarshal([]byte(a[0]), &r); err != nil {
		panic(err)
	}
	res, err := procgroup.Run(context.Background(), &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", a[1], os.Args[0]}, Env: append(os.Environ(), modeEnv+"=eat")},
		r, procgroup.WithOptions(timeout.WithName("tool")))
	answer := hostAnswer{Unsupported: errors.Is(err, errors.ErrUnsupported)}
	if err != nil {
		answer.Err = err.Error()
	}
	if res != nil {
		answer.Reason, answer.Message, answer.ExitCode, answer.Resources = res.Reason, res.Message, res.ExitCode, res.Resources
		for line := range strings.Lines(res.Stdout.String()) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				answer.Group = path
			}
		}
	}
	b, _ := json.Marshal(answer)
	fmt.Println(string(b))
	return 0
}

// containerMode gives its host a control group namespace and a /sys/fs/cgroup of its own, as a container has, mounted
// with the flags in its first argument, and starts it with the shell script in the second.
func containerMode(a []string) int {
	runtime.LockOSThread()
	var flags uintptr
	if a[0] == "ro" {
		flags = unix.MS_RDONLY
	}
	for _, err := range []error{
		unix.Unshare(unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Unmount(cgroupRoot, 0),
		unix.Mount("cgroup", cgroupRoot, "cgroup2", flags, ""),
		os.Setenv(modeEnv, "host"),
	} {
		if err != nil {
			panic(err)
		}
	}
	panic(syscall.Exec("/bin/sh", append([]string{"sh", "-c", a[1], os.Args[0]}, a[2:]...), os.Environ()))
}

// group makes a control group and enables the controllers that it needs in the enclosing group.
func group(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(cgroupRoot, path)
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"), []byte("+memory +pids +cpu"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		until(t, "the control group "+path+" to go", func() bool { return os.Remove(dir) == nil })
	})
	return dir
}

// write writes to a file of the system.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// inGroup starts a command in a control group, and returns what it prints.
func inGroup(t *testing.T, dir string, uid uint32, cmd *exec.Cmd) (a hostAnswer) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return a
}

// SPEC 6.21: where a host may limit its commands, with the controllers of a real system, and which error it gets
// elsewhere.
func TestControllersByPlace(t *testing.T) {
	needMachine(t)
	const limits = `{"Memory": 209715200, "Processes": 20, "CPU": 1.5}`
	const tell = "cat /proc/self/cgroup"
	all := procgroup.Resources{Memory: 200 << 20, Processes: 20, CPU: 1.5}
	const busy = "device or resource busy: this control group has processes"
	// The line of the documentation, with this program in place of the server.
	const leaf = `mkdir /sys/fs/cgroup/host && echo $$ >/sys/fs/cgroup/host/cgroup.procs && exec "$0" "$@"`
	top := group(t, "place")
	delegate := func(dir string) {
		if err := unix.Setxattr(dir, "trusted.delegate", []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	give := func(dirs ...string) {
		for _, dir := range dirs {
			for _, file := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
				if err := os.Chown(filepath.Join(dir, file), nobody, nobody); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, tt := range []struct {
		name    string
		uid     uint32
		leaf    bool // the host is in the group "host" below that which is prepared
		prepare func(dir string)
		cmd     *exec.Cmd
		group   string // of the command begins with this, below the group that is prepared
		says    []string
	}{
		{"root, in a group of somebody else", 0, false, nil, nil, "", []string{busy, "was not delegated to this program"}},
		{"root, in a leaf of a group of somebody else", 0, true, nil, nil, "", []string{"was not delegated to this program"}},
		{"root, in a delegated group itself", 0, false, delegate, nil, "", []string{busy}},
		{"root, in a leaf of a delegated group", 0, true, delegate, nil, "/tooldeadline-", nil},
		{"a user, in a group of root's", nobody, false, nil, nil, "", []string{"permission denied"}},
		{"a user, in a delegated group itself", nobody, false, func(dir string) { give(dir) }, nil, "", []string{busy}},
		{"a user, in a leaf of a delegated group", nobody, true, func(dir string) { give(dir, dir+"/host") }, nil, "/tooldeadline-", nil},
		{"a container", 0, false, nil, command("container", "rw", `exec "$0" "$@"`, limits, tell), "", []string{busy}},
		{"a container, in a leaf", 0, false, nil, command("container", "rw", leaf, limits, tell), "/tooldeadline-", nil},
		{"a container that may not write", 0, false, nil, command("container", "ro", `exec "$0" "$@"`, limits, tell), "", []string{"read-only file system"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(top, fmt.Sprint(i))
			group(t, strings.TrimPrefix(dir, cgroupRoot))
			at := dir
			if tt.leaf {
				at = group(t, strings.TrimPrefix(dir, cgroupRoot)+"/host")
			}
			if tt.prepare != nil {
				tt.prepare(dir)
			}
			cmd, own := tt.cmd, "/place/"+fmt.Sprint(i)
			if cmd == nil {
				cmd = command("host", limits, tell)
			} else { // it sees its group as the root
				own = ""
				t.Cleanup(func() { _ = os.Remove(filepath.Join(dir, "host")) })
			}
			a := inGroup(t, at, tt.uid, cmd)
			if tt.says == nil {
				if a.Err != "" || a.Resources != all || !strings.HasPrefix(a.Group, own+tt.group) {
					t.Errorf("%+v", a)
				}
				return
			}
			if !a.Unsupported || a.Resources != (procgroup.Resources{}) {
				t.Errorf("%+v", a)
			}
			for _, text := range tt.says {
				if !strings.Contains(a.Err, text) {
					t.Errorf("%q, without %q", a.Err, text)
				}
			}
		})
	}
}

// SPEC 6.21: which command is reported to have run out of memory, if limits lie within each other.
func TestMemoryOfGroups(t *testing.T) {
	needMachine(t)
	top := group(t, "around")
	if err := unix.Setxattr(top, "trusted.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	host := group(t, "around/host")
	const own = `cg=/sys/fs/cgroup$(sed s/^0::// /proc/self/cgroup)
`
	for _, tt := range []struct {
		name, around, limits, script string
		message                      string
	}{
		{"its own", "max", `{"Memory": 104857600}`, `"$0" 300; exit 0`, "tool ran out of memory (100 MiB)."},
		{"a limit around it", "104857600", `{"Processes": 20}`, `"$0" 300; exit 0`, "tool ran out of memory."},
		{"a narrower limit around it", "104857600", `{"Memory": 209715200}`, `"$0" 150; exit 0`, "tool ran out of memory."},
		{"a wider limit around it", "209715200", `{"Memory": 104857600}`, `"$0" 300; exit 0`, "tool ran out of memory (100 MiB)."},
		{"all are killed", "max", `{"Memory": 104857600}`, own + `echo 1 >$cg/memory.oom.group; "$0" 300; exit 0`, "tool ran out of memory (100 MiB)."},
		{"a group that it has made", "max", `{"Memory": 104857600}`, own + `mkdir $cg/sub && (sh -c 'echo $PPID' >$cg/sub/cgroup.procs; exec "$0" 300); exit 0`, "tool ran out of memory (100 MiB)."},
		{"too little to start", "max", `{"Memory": 4096}`, `exit 0`, "procgroup: Resources: Memory: 4096 bytes do not suffice to start a process"},
		{"too little, at best", "max", `{"Memory": 4096, "BestEffort": true}`, `exit 0`, "procgroup: Resources: Memory: 4096 bytes do not suffice to start a process"},
		{"enough", "max", `{"Memory": 104857600}`, `"$0" 10`, ""},
		{"files do not count as wants", "max", `{"Memory": 33554432}`, `for i in 1 2 3; do cat /bin/busybox >/dev/null; done`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, filepath.Join(top, "memory.max"), tt.around)
			defer write(t, filepath.Join(top, "memory.max"), "max")
			a := inGroup(t, host, 0, command("host", tt.limits, tt.script))
			if strings.HasPrefix(tt.message, "procgroup") { // not started
				if !strings.HasPrefix(a.Err, tt.message) || a.Unsupported {
					t.Errorf("%+v", a)
				}
				return
			}
			ran := tt.message != ""
			if a.Message != tt.message || ran != (a.Reason == procgroup.OutOfMemory) || ran != (a.ExitCode == 137) || a.Err != tt.message {
				t.Errorf("%+v", a)
			}
		})
	}
}

// SPEC 6.21: processes and processor time of a real system, with the figures.
func TestLimitsInForce(t *testing.T) {
	needMachine(t)
	for _, tt := range []struct {
		name   string
		r      procgroup.Resources
		script string
		fails  bool
		says   string
	}{
		{"a fork bomb", procgroup.Resources{Processes: 20}, `b() { b & b; }; b 2>/dev/null; echo end`, true, ""},
		{"one process", procgroup.Resources{Processes: 1}, `echo fine; true`, false, "fine"},
		{"one process, and a child", procgroup.Resources{Processes: 1}, `sleep 0; echo $?`, true, ""},
		{"hardly a processor", procgroup.Resources{CPU: 0.01}, `echo fine`, false, "fine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", tt.script), tt.r, procgroup.Limits{Total: 20 * time.Second})
			if (err != nil) != tt.fails || !strings.Contains(r.Combined.String(), tt.says) || r.Resources != tt.r || len(r.Survivors) > 0 {
				t.Errorf("%v, %+v", err, r)
			}
			t.Log(err, r.Usage)
		})
	}
	begun := time.Now()
	r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", work), procgroup.Resources{Memory: 1 << 30, Processes: 10, CPU: 0.25})
	took := time.Since(begun)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(took, r.Usage)
	u := r.Usage
	if u.CPU == nil || u.Throttled == nil || u.Memory == nil || *u.CPU < took/10 || *u.CPU > took*4/10 || *u.Throttled < took/4 || *u.Memory == 0 || *u.Memory > 200<<20 {
		t.Errorf("%v in %v", u, took)
	}
	if _, err := os.Stat(cgroupRoot + "/place/pids.peak"); err == nil && (u.Processes == nil || *u.Processes != 1) {
		t.Error(u)
	}
}

// askInput prints what a command with an input that does not come is found to wait for, after several looks.
func askInput(a []string) int {
	cmd := exec.Command("sh", "-c", a[0])
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := procgroup.Start(ctx, cmd)
	if err != nil {
		panic(err)
	}
	best := procgroup.InputWait{}
	for begun := time.Now(); time.Since(begun) < 4*time.Second && !best.Certain; time.Sleep(20 * time.Millisecond) {
		if w := p.Input(); w.Pid != 0 {
			best = w
		}
	}
	fmt.Printf("%q\n", best.String())
	cancel()
	_, _ = p.Wait()
	in.Close()
	return 0
}

// SPEC 6.18: where Yama does not let what a process waits for be seen, nothing is claimed.
func TestYama(t *testing.T) {
	needMachine(t)
	const scope = "/proc/sys/kernel/yama/ptrace_scope"
	const child, orphan = `printf '? '; read x`, `exec 3<&0; sh -c 'cat <&3 & exit 0'; printf '? '; read x`
	const certain, probable, unknown = `"waits for input: ?"`, `"probably waits for input: ?"`, `""`
	for value, answers := range []map[string][2]string{ // root, a user
		{child: {certain, certain}, orphan: {certain, certain}},
		{child: {certain, certain}, orphan: {certain, probable}},
		{child: {certain, unknown}, orphan: {certain, unknown}},
		{child: {unknown, unknown}, orphan: {unknown, unknown}}, // the last one: there is no way back from 3
	} {
		write(t, scope, fmt.Sprint(value))
		for script, want := range answers {
			for i, uid := range []uint32{0, nobody} {
				t.Run(fmt.Sprintf("%d, uid %d, %s", value, uid, script), func(t *testing.T) {
					cmd := command("askInput", script)
					cmd.Stderr = os.Stderr
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
					out, err := cmd.Output()
					if got := strings.TrimSpace(string(out)); err != nil || got != want[i] {
						t.Errorf("%v, %s, want %s", err, got, want[i])
					}
				})
			}
		}
	}
}
