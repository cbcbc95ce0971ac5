// Package scratch makes private directories that do not outlive their process for long, however it ends.
//
// A process keeps its directories locked. The system releases the locks when the process ends. Therefore a directory
// that is not locked is abandoned, and the next Make in the same parent removes it. The lock, unlike a process id,
// shows that a process is alive even if that runs in another container.
package scratch

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A Dir is a private directory of this process.
type Dir struct{ path string }

// held holds the locked files of the directories of this process, by path. They are not fields of Dir: when a Dir is
// garbage collected, its lock would be released, although the program may still use the directory.
var held = struct {
	mu    sync.Mutex
	locks map[string]*os.File
}{locks: make(map[string]*os.File)}

// prefix returns the beginning of the names of this host's directories, with a hash of the host name. Only these
// directories are ever removed as abandoned, because hosts that share a file system may not see each other's locks.
var prefix = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return fmt.Sprintf("procgroup-output-%08x-", sum.Sum32())
})

// errLocked is the error if another process has the lock of a directory.
var errLocked = errors.New("locked by another process")

// Make makes a directory with mode 0700 in parent. Before that, it removes the directories that processes of this user
// on this host have made in parent and left when they ended. A failure to remove one is no error.
func Make(parent string) (*Dir, error) {
	removeAbandoned(parent)
	return makeIn(parent)
}

// tidied has the parents in which MakeOften has removed abandoned directories, as keys.
var tidied sync.Map

// MakeOften is like Make, but removes the directories of ended processes only in its first call for a parent.
func MakeOften(parent string) (*Dir, error) {
	if _, again := tidied.LoadOrStore(parent, true); !again {
		removeAbandoned(parent)
	}
	return makeIn(parent)
}

func makeIn(parent string) (*Dir, error) {
	for tries := 0; ; tries++ {
		path, err := os.MkdirTemp(parent, prefix())
		if err != nil {
			return nil, err
		}
		lock, err := hold(path)
		if err == nil && lock != nil {
			err = same(lock, path)
		}
		if err == nil {
			held.mu.Lock()
			held.locks[path] = lock
			held.mu.Unlock()
			return &Dir{path}, nil
		}
		// Between MkdirTemp and hold another process may have taken the directory for abandoned.
		if lock != nil {
			_ = lock.Close()
		}
		_ = os.RemoveAll(path)
		if tries == 10 || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errLocked) {
			return nil, err
		}
	}
}

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory and everything in it. If that fails, as on Windows for files that are open, it returns
// the error, and a later Make tries again.
func (d *Dir) Remove() error {
	held.mu.Lock()
	lock := held.locks[d.path]
	delete(held.locks, d.path)
	held.mu.Unlock()
	if lock != nil {
		_ = lock.Close() // first: an open file cannot be removed on Windows
	}
	if os.Remove(d.path) == nil { // it is empty
		return nil
	}
	return os.RemoveAll(d.path)
}

// removeAbandoned removes the directories in parent whose processes have ended. It ignores errors: a directory that
// cannot be removed stays.
func removeAbandoned(parent string) {
	all, _ := os.ReadDir(parent)
	for _, e := range all {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix()) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if info, err := os.Lstat(path); err == nil && info.IsDir() && mine(info) {
			removeOne(path, info)
		}
	}
}

// removeOne removes the directory at path if its process has ended. It follows no symbolic link, and removes nothing if
// the directory is no longer that of info, or has anything but the lock and files and sockets whose names are digits,
// which are all that a process puts there.
func removeOne(path string, info fs.FileInfo) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return
	}
	defer root.Close()
	if is, err := root.Stat("."); err != nil || !os.SameFile(is, info) {
		return
	}
	release, err := take(root)
	if err != nil {
		return
	}
	defer release()
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	all, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return
	}
	for _, e := range all {
		if e.Name() != lockName && (!e.Type().IsRegular() && e.Type() != fs.ModeSocket || strings.Trim(e.Name(), "0123456789") != "") {
			return // not made by a process that uses this package
		}
	}
	for _, e := range all {
		if e.Name() != lockName && root.Remove(e.Name()) != nil {
			return
		}
	}
	finish(root, path, release)
}
