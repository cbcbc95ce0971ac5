//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows

package scratch_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/scratch"
)

const parentEnv = "SCRATCH_TEST_PARENT" // the test binary makes a directory there, says which, and waits

func TestMain(m *testing.M) {
	if parent := os.Getenv(parentEnv); parent != "" {
		dir, err := scratch.Make(parent)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir.Path(), "123"), []byte("output"), 0o600)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = os.Chdir(dir.Path())                                                         // the path may be too long for a socket
		_, _ = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "0", Net: "unixgram"}) // not on Windows
		fmt.Println(dir.Path())
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// another starts a process that has a directory in parent.
func another(t *testing.T, parent string) (path string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+parent)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	s.Scan()
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = in.Close()
		}
	}
	t.Cleanup(kill)
	return s.Text(), kill
}

func in(t *testing.T, parent string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, filepath.Join(parent, e.Name()))
	}
	return all
}

// What a process leaves that was killed is removed by the next; what one has that lives stays.
func TestAbandoned(t *testing.T) {
	parent := t.TempDir()
	lives, _ := another(t, parent)
	dies, kill := another(t, parent)
	mine, err := scratch.Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(in(t, parent)); got != 3 {
		t.Fatalf("%d directories while all processes live", got)
	}
	kill()
	other, err := scratch.Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{lives: true, mine.Path(): true, other.Path(): true}
	got := map[string]bool{}
	for _, path := range in(t, parent) {
		got[path] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after %s has lost its process (-want +got):\n%s", dies, d)
	}
	if _, err := os.Stat(filepath.Join(lives, "123")); err != nil {
		t.Error(err)
	}
	for range 2 {
		for _, d := range []*scratch.Dir{mine, other} {
			if err := d.Remove(); err != nil {
				t.Error(err)
			}
		}
	}
	if d := cmp.Diff([]string{lives}, in(t, parent)); d != "" {
		t.Error(d)
	}
}

// MakeOften removes what a killed process leaves in its first call for a parent only.
func TestMakeOften(t *testing.T) {
	parent := t.TempDir()
	_, kill := another(t, parent)
	kill()
	mine, err := scratch.MakeOften(parent)
	must(t, err)
	if d := cmp.Diff([]string{mine.Path()}, in(t, parent)); d != "" {
		t.Errorf("after the first call (-want +got):\n%s", d)
	}
	must(t, mine.Remove())
	left, kill := another(t, parent)
	kill()
	mine, err = scratch.MakeOften(parent)
	must(t, err)
	must(t, mine.Remove())
	if d := cmp.Diff([]string{left}, in(t, parent)); d != "" {
		t.Errorf("after the second call (-want +got):\n%s", d)
	}
}

// Nothing goes that is not certainly one of ours and nobody's: no link, no directory with other things in it, none of
// another system, none that is open to others.
func TestNotAbandoned(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, parent, path string)
		gone bool
	}{
		{"as it was left", func(*testing.T, string, string) {}, true},
		{"empty", func(t *testing.T, _, path string) {
			must(t, os.RemoveAll(path))
			must(t, os.Mkdir(path, 0o700))
		}, true},
		{"with a file of somebody's", func(t *testing.T, _, path string) {
			must(t, os.WriteFile(filepath.Join(path, "notes.txt"), nil, 0o600))
		}, false},
		{"with a directory", func(t *testing.T, _, path string) { must(t, os.Mkdir(filepath.Join(path, "7"), 0o700)) }, false},
		{"open to others", func(t *testing.T, _, path string) {
			if runtime.GOOS == "windows" {
				t.Skip("it has no modes")
			}
			must(t, os.Chmod(path, 0o755))
		}, false},
		{"of another system", func(t *testing.T, parent, path string) {
			name := []byte(filepath.Base(path))
			name[len("procgroup-output-")] ^= 1
			must(t, os.Rename(path, filepath.Join(parent, string(name))))
		}, false},
		{"a link", func(t *testing.T, parent, path string) {
			must(t, os.Rename(path, filepath.Join(parent, "elsewhere")))
			if err := os.Symlink(filepath.Join(parent, "elsewhere"), path); err != nil {
				t.Skip(err)
			}
		}, false},
		{"another name", func(t *testing.T, parent, path string) { must(t, os.Rename(path, filepath.Join(parent, "output"))) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parent := t.TempDir()
			path, kill := another(t, parent)
			kill()
			tc.make(t, parent, path)
			before := in(t, parent)
			d, err := scratch.Make(parent)
			if err != nil {
				t.Fatal(err)
			}
			must(t, d.Remove())
			if tc.gone {
				before = nil
			}
			if d := cmp.Diff(before, in(t, parent)); d != "" {
				t.Error(d)
			}
			for _, path := range before {
				if _, err := os.Stat(filepath.Join(path, "123")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Many that make directories at the same time take none for abandoned, and each has its own.
func TestMakeAtOnce(t *testing.T) {
	parent := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 30 {
				d, err := scratch.Make(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(d.Path(), "1"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left := in(t, parent); len(left) > 0 {
		t.Error(left)
	}
}
