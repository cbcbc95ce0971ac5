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

// home remembers where control groups can be used and, until retry, where they cannot. It does not remember the control
// group of this process, because the process may be moved to another one.
var home struct {
	sync.Mutex
	mount    string // where the cgroup2 hierarchy is mounted, or "" if that has to be read
	root     string // which part of the hierarchy is mounted; "" means all
	usable   string // the control group below which a process was started in a Group
	unusable string // the control group below which no Group could be used
	reason   error  // why unusable is so
	retry    time.Time
}

// retryAfter is the time after a failure for which New does not try again.
const retryAfter = 10 * time.Second

// fail records that no Group can be used below own because of err, and returns err. It forgets the mount, which may
// have changed. It does not record a temporary error, such as a lack of descriptors.
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

// ownPath returns the path of this process's control group in the version 2 hierarchy.
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

// mountPoint returns where the version 2 hierarchy is mounted, and which part of it: root is "" for all of it.
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

// unescape replaces the octal escapes of /proc/self/mountinfo, such as \040.
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

// prefix begins the names of the directories of Groups.
const prefix = "tooldeadline-"

// removeLeftovers removes the Groups in parent whose creators were killed, and the control groups below these Groups. A
// creator that is alive holds a lock, see makeGroup. A Group in which a process still runs stays, because the process
// may be meant to run on.
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

// removeBelow removes the empty control groups below dir, from the leaves up.
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
