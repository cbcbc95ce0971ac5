// Package scratch makes private directories that do not outlive their process for long, however it ends.
//
// A process keeps its directories locked. The system gives the locks up with the process, so a directory whose
// lock can be had is nobody's, and the next Make in the same parent removes it. The lock of a process that lives
// cannot be had, whatever its process id is and in whichever container it runs.
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

// held has the locks of the directories of this process. They are not in the Dir: one that is collected would give
// its lock up, while the program may still use the files.
var held = struct {
	mu    sync.Mutex
	locks map[string]*os.File
}{locks: make(map[string]*os.File)}

// prefix begins the names of the directories of this system: file systems that several systems share may not share
// locks.
var prefix = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return fmt.Sprintf("procgroup-output-%08x-", sum.Sum32())
})

// errLocked is the error if another process has the lock.
var errLocked = errors.New("locked by another process")

// Make makes a directory in parent, with mode 0700, after it has removed those of processes that have ended. A
// parent of "" means the directory for temporary files.
func Make(parent string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	removeAbandoned(parent)
	return makeIn(parent)
}

// tidied has the parents in which MakeOften has removed what was abandoned.
var tidied sync.Map

// MakeOften is like Make, for directories that come and go: only its first call for a parent removes the
// directories of processes that have ended.
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
		// Another process has come between the two, and taken the directory for one that is nobody's.
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

// Remove removes the directory with all that is in it. What cannot be removed now, since it is open on Windows, is
// left to the next Make.
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

// removeAbandoned removes the directories in parent whose processes have ended. What cannot be removed stays.
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

// removeOne removes a directory whose process has ended. It removes only what a process of this package puts there,
// and follows no link.
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
			return // somebody keeps something here
		}
	}
	for _, e := range all {
		if e.Name() != lockName && root.Remove(e.Name()) != nil {
			return
		}
	}
	finish(root, path, release)
}
