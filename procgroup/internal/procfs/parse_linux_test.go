package procfs

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// stat is a line of /proc/<pid>/stat with a name.
func stat(name string) string {
	return "42 (" + name + ") Z 1 42 42 0 -1 2097156 10 20 30 40 1 2 3 4 20 0 5 0 1234 " + strings.Repeat("0 ", 27) + "999 0 0"
}

func TestParseStat(t *testing.T) {
	const tick = 10 * time.Millisecond
	want := Process{PID: 42, Parent: 1, Group: 42, State: 'Z', Threads: 5, Start: 1234, EnvironAt: 999,
		CPU: 3 * tick, ChildrenCPU: 7 * tick, Faults: 30, Kernel: true, Exiting: true}
	for _, name := range []string{"sh", "", "a b", ") R 1 2 3 (", "\n"} {
		if p, ok := parseStat([]byte(stat(name))); !ok || p != want {
			t.Errorf("%q: %v, %s", name, ok, cmp.Diff(want, p))
		}
	}
	for _, text := range []string{"", "42", "42 (sh", "42 (sh)", "42 (sh) ", "(sh) R", ")(", "42 (sh) RR 1", "42 (sh) R 1 42 42 0"} {
		if p, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func TestDead(t *testing.T) {
	for _, tt := range []struct {
		state   byte
		threads int
		want    bool
	}{{'R', 1, false}, {'S', 2, false}, {'Z', 1, true}, {'Z', 0, true}, {'Z', 2, false}, {'X', 2, true}, {'x', 1, true}} {
		if p := (Process{State: tt.state, Threads: tt.threads}); p.Dead() != tt.want {
			t.Errorf("%c with %d threads: %v", tt.state, tt.threads, !tt.want)
		}
	}
}

func TestParseSmallFiles(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"stack", parseStack([]byte("[<0>] hrtimer_nanosleep+0x74/0xf0\n[<0>] common_nsleep+0x30/0x60\n[<0>] a+0x1/0x2\n[<0>] b+0x1/0x2\n")), "hrtimer_nanosleep < common_nsleep < a"},
		{"no stack", parseStack(nil), ""},
		{"io, by calls", strconv.FormatUint(parseIO([]byte("rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 3\nwrite_bytes: 4\ncancelled_write_bytes: 99\n")), 10), "30"},
		{"io, by maps", strconv.FormatUint(parseIO([]byte("rchar: 1\nwchar: 2\nread_bytes: 30\nwrite_bytes: 40\n")), 10), "70"},
		{"last id", strconv.Itoa(parseLastPID([]byte("0.1 0.2 0.3 2/156 13615\n"))), "13615"},
		{"no last id", strconv.Itoa(parseLastPID(nil)), "0"},
		{"values", strings.Join(Values([]byte("A=1\x00B=2\x00AA=3\x00A=4=5\x00A\x00"), "A"), "|"), "1|4=5"},
		{"no values", strings.Join(Values(nil, "A"), "|"), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	for _, tt := range []struct {
		text string
		want bool
	}{{"0::/a/x-1\n", true}, {"0::/a/x-1/below\n", true}, {"0::/x-1 (deleted)\n", true}, {"0::/a/x-10\n", false}, {"0::/ax-1\n", false}, {"", false}} {
		if hasCgroup([]byte(tt.text), "x-1") != tt.want {
			t.Errorf("cgroup %q: %v", tt.text, !tt.want)
		}
	}
	const status = "Name:\tsh\nUid:\t0\t1000\t0\t0\nGid:\t7\t7\t7\t7\n"
	if !hasUser([]byte(status), 1000) || hasUser([]byte(status), 7) || hasUser([]byte(status), 100) || hasUser(nil, 0) {
		t.Error("users of a process")
	}
}

// What is read about a process is what is known about it: this one, and a child.
func TestReader(t *testing.T) {
	if !Works() {
		t.Skip("/proc is not that of this process id namespace")
	}
	child := exec.Command("sleep", "120")
	child.Env = []string{"A=1", "B="}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	pid := child.Process.Pid
	var r Reader
	p, ok := r.Process(pid)
	if !ok || p.PID != pid || p.Parent != os.Getpid() || p.Start < SelfStart() || p.Dead() || p.Kernel || p.Age() > time.Minute {
		t.Fatalf("%+v, %v", p, ok)
	}
	if children, ok := OwnChildren(); ok && !slices.Contains(children, pid) {
		t.Errorf("%d is not among %v", pid, children)
	}
	if all := r.PIDs(); !slices.Contains(all, pid) || slices.Contains(all, os.Getpid()) {
		t.Error("the list of processes")
	}
	if !r.SameUser(pid) {
		t.Error("it runs as the same user")
	}
	// During its exec it has no environment.
	var env []byte
	for until := time.Now().Add(time.Minute); !Complete(env) && time.Now().Before(until); {
		env, _ = r.Environ(&p)
	}
	if string(env) != "A=1\x00B=\x00" {
		t.Errorf("environment %q", env)
	}
	if args := r.Args(&p); string(args) != "sleep\x00120\x00" || r.Name(pid) != "sleep" {
		t.Errorf("%q, %q", args, r.Name(pid))
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if p, ok := r.Process(pid); ok && p.Parent == os.Getpid() {
		t.Errorf("after its end: %+v", p)
	}
	if _, err := r.Environ(&p); !Gone(err) {
		t.Errorf("its environment: %v", err)
	}
	if r.Short {
		t.Error("short of descriptors")
	}
}

// SPEC 6.11: a read that fails for lack of descriptors says nothing about the process.
func TestShortOfDescriptors(t *testing.T) {
	var most unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &most); err != nil {
		t.Fatal(err)
	}
	self := Process{PID: os.Getpid(), State: 'S'}
	exiting := Process{PID: os.Getpid(), State: 'Z'} // its main thread has ended
	for name, read := range map[string]func(r *Reader){
		"Process":                func(r *Reader) { r.Process(self.PID) },
		"Environ":                func(r *Reader) { _, _ = r.Environ(&self) },
		"Environ of its threads": func(r *Reader) { _, _ = r.Environ(&exiting) },
		"Threads":                func(r *Reader) { r.Threads(&self) },
		"OpenFiles":              func(r *Reader) { r.OpenFiles(self.PID) },
		"Holds":                  func(r *Reader) { _, _ = r.Holds(self.PID, "pipe:[0]", false) },
		"Sockets":                func(r *Reader) { r.Sockets(self.PID, 1, func(uint64) {}) },
		"PIDs":                   func(r *Reader) { r.PIDs() },
	} {
		var r Reader
		if read(&r); r.Short {
			t.Errorf("%s: short of descriptors", name)
		}
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Max: most.Max}, nil); err != nil {
			t.Fatal(err)
		}
		read(&r)
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &most, nil); err != nil {
			t.Fatal(err)
		}
		if !r.Short {
			t.Errorf("%s: not short of descriptors", name)
		}
	}
}

// A process that ends while its files are listed has ended, and is not one that holds none of them.
func TestGone(t *testing.T) {
	child := exec.Command("sleep", "120")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := new(Reader).openDir("/proc/" + strconv.Itoa(child.Process.Pid) + "/fd")
	_ = child.Process.Kill()
	_ = child.Wait()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if n, err := eachLink(dir, 1, func(string, string) bool { return true }); n > 0 || !Gone(err) {
		t.Errorf("%d files, %v", n, err)
	}
	if _, err := new(Reader).Environ(&Process{PID: child.Process.Pid, State: 'Z'}); !Gone(err) {
		t.Errorf("its environment: %v", err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte(stat("sh")))
	f.Add([]byte("18446744073709551615 ()) R 9223372036854775808"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// A negative id would be that of a group, or of all, to kill(2).
		if p, _ := parseStat(text); p.PID < 0 || p.Parent < 0 || p.Group < 0 || p.Threads < 0 {
			t.Errorf("%+v", p)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("rchar: 1\nA=1\x00A=2\x00 3 [<0>] a+1/2\nUid:\t0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parseIO(text)
		hasUser(text, 0)
		hasCgroup(text, "a")
		for _, pid := range parsePIDs(text) {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
		if n := parseLastPID(text); len(text) == 0 && n != 0 {
			t.Errorf("last id %d", n)
		}
		if n := strings.Count(parseStack(text), " < "); bytes.Count(text, []byte("] ")) <= n && n > 0 {
			t.Errorf("%d frames", n+1)
		}
		if n := len(Values(text, "A")); n > bytes.Count(text, []byte("A=")) {
			t.Errorf("%d values", n)
		}
	})
}

func FuzzDiag(f *testing.F) {
	f.Add(append([]byte("\x48\x00\x00\x00\x14\x00\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00"), tcpRequest(2)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		all := make(map[uint64]uint64)
		if parseTCP(b, all); len(all) > len(b)/tcpMsgLen {
			t.Errorf("%d connections in %d bytes", len(all), len(b))
		}
		parseUnix(b)
	})
}

func TestWritable(t *testing.T) {
	for _, tc := range []struct {
		info string
		want bool
	}{
		{"pos:\t0\nflags:\t00\nmnt_id:\t13\n", false},
		{"pos:\t0\nflags:\t02004000\n", false},
		{"pos:\t0\nflags:\t01\n", true},
		{"pos:\t0\nflags:\t02000002\n", true},
		{"flags:\t9\n", false},
		{"pos:\t1\n", false},
		{"", false},
	} {
		if got := isWritable([]byte(tc.info)); got != tc.want {
			t.Errorf("%q: %v", tc.info, got)
		}
	}
}
