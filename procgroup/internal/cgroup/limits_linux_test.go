package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fakeGroups makes files that look like control groups: few machines have the controllers, and what this tests is
// where they are looked for and what is written. What the kernel does then, it does not test.
func fakeGroups(t *testing.T, files map[string]string) (mount string) {
	t.Helper()
	mount = t.TempDir()
	for path, text := range files {
		path = filepath.Join(mount, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return mount
}

const (
	controllers = "/cgroup.controllers"
	subtree     = "/cgroup.subtree_control"
)

// SPEC 6.21: where a control group with limits is made, and the error if none can be made.
func TestHomeFor(t *testing.T) {
	all := Limits{Memory: 1 << 20, Processes: 5, CPU: 0.5}
	for name, tc := range map[string]struct {
		files map[string]string
		rel   string
		limit Limits
		dir   string
		got   Limits
		says  []string
	}{
		"enabled in its own": {map[string]string{"a" + controllers: "cpu memory pids", "a" + subtree: "cpu memory pids\n"}, "/a", all, "/a", all, nil},
		"enabled by this":    {map[string]string{"a" + controllers: "cpu memory pids", "a" + subtree: "cpu pids"}, "/a", Limits{Memory: 1}, "/a", Limits{Memory: 1}, nil},
		"the root":           {map[string]string{controllers: "memory", subtree: ""}, "/", Limits{Memory: 1}, "/", Limits{Memory: 1}, nil},
		"a leaf in the root that is seen": {map[string]string{"a" + controllers: "", "a" + subtree: "", controllers: "memory", subtree: "memory"},
			"/a", Limits{Memory: 1}, "/", Limits{Memory: 1}, nil},
		"none": {map[string]string{"a" + controllers: "hugetlb\n", "a" + subtree: "", controllers: "hugetlb\n"}, "/a", all, "/a", Limits{},
			[]string{"Memory: there is no memory controller in ", "which has hugetlb", "Processes: there is no pids", "CPU: there is no cpu"}},
		"none at all": {map[string]string{"a" + controllers: "", controllers: ""}, "/a", Limits{CPU: 1}, "/a", Limits{}, []string{"/a/cgroup.controllers, which has none (unsupported operation); CPU: there is no cpu"}},
		"one of two": {map[string]string{controllers: "pids", subtree: "pids"}, "/", Limits{Memory: 1, Processes: 2}, "/", Limits{Processes: 2},
			[]string{"Memory: there is no memory controller"}},
		"one of two, around": {map[string]string{"a" + controllers: "", controllers: "pids", subtree: "pids"}, "/a", Limits{Memory: 1, Processes: 2}, "/", Limits{Processes: 2},
			[]string{"Memory: there is no memory controller"}},
		"processes, threaded": {map[string]string{"a/cgroup.type": "domain\n", "a/cgroup.procs": "1\n", "a" + controllers: "cpu pids", "a" + subtree: "", controllers: "memory"},
			"/a", Limits{Processes: 1, CPU: 1}, "/a", Limits{}, []string{"Processes, CPU: write ", "/a/cgroup.subtree_control: device or resource busy: this control group has processes"}},
		"processes, enabled": {map[string]string{"a/cgroup.type": "domain threaded\n", "a/cgroup.procs": "1\n", "a" + controllers: "pids", "a" + subtree: "pids", controllers: "memory"},
			"/a", Limits{Processes: 1}, "/a", Limits{}, []string{"device or resource busy"}},
		"threads": {map[string]string{"a/cgroup.type": "threaded\n", "a" + controllers: "pids", "a" + subtree: "pids", controllers: "memory"},
			"/a", Limits{Processes: 1}, "/a", Limits{}, []string{"a/cgroup.procs: no such file"}},
		"processes, a leaf": {map[string]string{"a/cgroup.type": "domain\n", "a/cgroup.procs": "1\n", "a" + controllers: "pids", "a" + subtree: "", "cgroup.type": "domain\n", "cgroup.procs": "", controllers: "pids", subtree: "pids"},
			"/a", Limits{Processes: 1}, "/", Limits{Processes: 1}, nil},
		"not mounted":        {nil, "/a", Limits{Memory: 1}, "/a", Limits{}, []string{"cgroup.controllers: no such file"}},
		"not to be enabled":  {map[string]string{controllers: "memory"}, "/", Limits{Memory: 1}, "/", Limits{}, []string{"Memory: ", "cgroup.subtree_control: no such file"}},
		"only what is asked": {map[string]string{controllers: "cpu memory pids", subtree: "pids"}, "/", Limits{Processes: 9}, "/", Limits{Processes: 9}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mount := fakeGroups(t, tc.files)
			dir, got, err := homeFor(tc.limit, mount, tc.rel)
			if want := filepath.Join(mount, tc.dir); dir != want {
				t.Errorf("in %s, want %s", dir, want)
			}
			if diff := cmp.Diff(tc.got, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tc.says != nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("error %v", err)
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %v, without %q", err, text)
				}
			}
		})
	}
	mount := fakeGroups(t, map[string]string{controllers: "memory pids", subtree: "pids"})
	if _, _, err := homeFor(Limits{Memory: 1, Processes: 2}, mount, "/"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(mount + subtree); string(text) != "+memory" {
		t.Errorf("%q was written", text)
	}
}

// SPEC 6.21: a slice of systemd's is not this program's, though root may write there.
func TestDelegated(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root")
	}
	files := map[string]string{
		"x.slice/x.service" + controllers: "", "x.slice" + controllers: "memory", "x.slice" + subtree: "memory",
	}
	mount := fakeGroups(t, files)
	if dir, got, err := homeFor(Limits{Memory: 1}, mount, "/x.slice/x.service"); err == nil {
		t.Errorf("not delegated: %s, %v", dir, got)
	} else if !strings.HasSuffix(err.Error(), "x.slice was not delegated to this program") {
		t.Errorf("%v", err)
	}
	for _, value := range []string{"0", "1"} {
		if err := unix.Setxattr(mount+"/x.slice", "trusted.delegate", []byte(value), 0); err != nil {
			t.Skip("no attributes in", mount, err)
		}
		if dir, _, err := homeFor(Limits{Memory: 1}, mount, "/x.slice/x.service"); (err == nil) != (value == "1") || err == nil && dir != mount+"/x.slice" {
			t.Errorf("delegated %s: %s, %v", value, dir, err)
		}
	}
}

// SPEC 6.21: EBUSY says what to do.
func TestNotEnabled(t *testing.T) {
	busy := notEnabled("Memory", &os.PathError{Op: "write", Path: "/x/cgroup.subtree_control", Err: unix.EBUSY})
	for _, text := range []string{"Memory: write /x/cgroup.subtree_control: device or resource busy: this control group has processes", "DelegateSubgroup="} {
		if !strings.Contains(busy.Error(), text) {
			t.Errorf("%v, without %q", busy, text)
		}
	}
	if denied := notEnabled("CPU", unix.EACCES); denied.Error() != "CPU: permission denied (unsupported operation)" || !errors.Is(denied, errors.ErrUnsupported) || !errors.Is(denied, unix.EACCES) {
		t.Errorf("%v", denied)
	}
}

// SPEC 6.21: the text that is written for each limit.
func TestLimitFiles(t *testing.T) {
	empty := map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": "", "cpu.max": ""}
	for name, tc := range map[string]struct {
		limits Limits
		files  map[string]string // in addition
	}{
		"none":   {Limits{}, nil},
		"memory": {Limits{Memory: 512 << 20}, map[string]string{"memory.max": "536870912", "memory.swap.max": "0"}},
		"pids":   {Limits{Processes: 7}, map[string]string{"pids.max": "7"}},
		"cpu":    {Limits{CPU: 0.25}, map[string]string{"cpu.max": "25000 100000"}},
		"least":  {Limits{CPU: 0.01}, map[string]string{"cpu.max": "1000 100000"}},
		"more":   {Limits{CPU: 2.5}, map[string]string{"cpu.max": "250000 100000"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fakeGroups(t, empty)
			if err := (&Group{dir: dir}).limit(tc.limits); err != nil {
				t.Fatal(err)
			}
			for file := range empty {
				if text, _ := os.ReadFile(filepath.Join(dir, file)); string(text) != tc.files[file] {
					t.Errorf("%s has %q, want %q", file, text, tc.files[file])
				}
			}
		})
	}
	noSwap := fakeGroups(t, map[string]string{"memory.max": ""})
	if err := (&Group{dir: noSwap}).limit(Limits{Memory: 5000}); err != nil {
		t.Errorf("a kernel without swap: %v", err)
	}
	if err := (&Group{dir: t.TempDir()}).limit(Limits{Processes: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a group without the file: %v", err)
	}
}
