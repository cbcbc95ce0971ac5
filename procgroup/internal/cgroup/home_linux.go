package cgroup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A home remembers where cgroups can be made, and for a while that they cannot. The
// control group of this process is read again each time, because the process may be moved.
var home struct {
	sync.Mutex
	mount    string // where the hierarchy is mounted
	root     string // which part of the hierarchy is mounted
	usable   string // a process was started below this one
	unusable string // no cgroup could be made below this one ...
	reason   error  // ... because of this
	retry    time.Time
}

// retryAfter is how long no cgroup is made after a failure.
const retryAfter = 10 * time.Second

// fail remembers that own is no place for cgroups, and forgets the mount: it may
// have changed. A lack that passes, for example of descriptors, is not remembered.
func fail(own string, err error) error {
	for _, passing := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		if errors.Is(err, passing) {
			return err
		}
	}
	h := &home
	h.Lock()
	defer h.Unlock()
	h.unusable, h.reason, h.retry = own, err, time.Now().Add(retryAfter)
	h.mount, h.usable = "", ""
	return err
}

// ownPath returns the path of this process in the hierarchy.
func ownPath() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		if path, ok := bytes.CutPrefix(line, []byte("0::/")); ok {
			return "/" + string(path), nil
		}
	}
	return "", errors.New("no cgroup of version 2")
}

// mountPoint finds the mounted hierarchy.
func mountPoint() (mount, root string, err error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		front, back, ok := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if !ok || len(fields) < 5 || !strings.HasPrefix(back, "cgroup2 ") {
			continue
		}
		root, mount = unescape(fields[3]), unescape(fields[4])
		if root == "/" {
			root = ""
		}
		return mount, root, nil
	}
	return "", "", errors.New("no cgroup2 file system is mounted")
}

// unescape replaces escapes such as \040.
func unescape(s string) string {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// removeLeftovers removes the cgroups that killed hosts have left behind, with those that their commands have made
// below. A process that still runs in one keeps it: the users of that host may want it to. The cgroups of a host that
// lives are locked.
func removeLeftovers(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*-*"))
	for _, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			removeBelow(dir)
			_ = unix.Rmdir(dir)
		}
		unix.Close(fd)
	}
}

// removeBelow removes the empty cgroups below dir, from the leaves up.
func removeBelow(dir string) {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = unix.Rmdir(dirs[i])
	}
}
