package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// find implements the function that watch describes. If named is not an ancestor, no process is between the two.
func find(named int) (*process, []*process, error) {
	chain, err := ancestors()
	if err != nil {
		return nil, nil, err
	}
	if named != 0 {
		at := slices.IndexFunc(chain, func(p *process) bool { return p.Pid == named })
		closeAll(chain[at+1:])
		if at < 0 {
			p, err := open(named)
			return p, nil, err
		}
		return chain[at], chain[:at:at], nil
	}
	at, stdin, err := hostOf(chain)
	closeAll(chain[at+1:])
	if err != nil {
		return nil, nil, err
	}
	chain[at].identify(stdin)
	return chain[at], chain[:at:at], nil
}

func closeAll(all []*process) {
	for _, p := range all {
		p.close()
	}
}

// procIsOurs reports whether /proc belongs to the PID namespace of this process. In that of another namespace, the same
// ids mean other processes.
var procIsOurs = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// patience bounds a query to the system about a process. The answer comes late if the process is busy, and may never
// come if a file system hangs. After that time it counts as unknown.
const patience = time.Second

// ask calls read, which queries the system about processes. If it takes longer than patience, answered is false.
func ask[T any](read func(r *procfs.Reader) T) (value T, answered bool) {
	return procfs.Ask(procfs.NewPatience(patience), read)
}

// stat returns the state of the process with the id pid. ok is false if there is no such process, or if the system does
// not answer in time.
func stat(pid int) (p procfs.Process, ok bool) {
	p, _ = ask(func(r *procfs.Reader) procfs.Process {
		p, _ := r.Process(pid)
		return p
	})
	return p, p.PID != 0
}

// maxRestarts bounds the number of attempts of ancestors: it starts again whenever a process ends meanwhile.
const maxRestarts = 100

// ancestors opens and returns the visible ancestors of this process, the parent first. The caller must close them.
func ancestors() ([]*process, error) {
	if !procIsOurs() {
		return onlyParent()
	}
restart:
	for range maxRestarts {
		var chain []*process
		for child := os.Getpid(); child != 1; {
			before, ok := stat(child)
			if !ok || before.Parent == 0 { // hidden, or in a namespace above
				return chain, nil
			}
			p, err := open(before.Parent)
			if err != nil && !errors.Is(err, errGone) {
				closeAll(chain)
				return nil, err
			}
			// The id was the parent's before open, and still is. So it was not reused in between, and the descriptor
			// refers to the parent.
			after, ok := stat(child)
			if err != nil || !ok || after.Parent != before.Parent || after.Start != before.Start {
				if p != nil {
					p.close()
				}
				closeAll(chain)
				continue restart
			}
			chain = append(chain, p)
			child = p.Pid
		}
		return chain, nil
	}
	return nil, errors.New("host: the processes above this one end faster than they can be opened")
}

// onlyParent opens and returns the parent, for systems without a usable /proc, which show no other ancestor. It returns
// nil if the parent is process 1, is in another PID namespace or has ended.
func onlyParent() ([]*process, error) {
	parent := os.Getppid()
	if parent <= 1 {
		return nil, nil
	}
	p, err := open(parent)
	if errors.Is(err, errGone) || err == nil && os.Getppid() != parent {
		if p != nil {
			p.close()
		}
		return nil, nil
	}
	return []*process{p}, err
}

// hostOf returns the index of the host in chain, the ancestors, and the other end of stdin. The index is -1 if there is
// an error.
func hostOf(chain []*process) (int, end, error) {
	var info unix.Stat_t
	if err := unix.Fstat(0, &info); err != nil {
		return -1, end{}, fmt.Errorf("host: nothing is watched: stdin: %w", err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		peer, err := unix.GetsockoptUcred(0, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return -1, end{}, fmt.Errorf("host: nothing is watched: the peer of stdin: %w", err)
		}
		at := slices.IndexFunc(chain, func(p *process) bool { return p.Pid == int(peer.Pid) })
		if at < 0 {
			return -1, end{}, errors.New("host: nothing is watched: the process at the other end of stdin is not an ancestor")
		}
		return at, otherEnd(info.Ino), nil
	case unix.S_IFIFO:
		// A FIFO has a path, so a process that has nothing to do with this one may open it later.
		if link, err := os.Readlink("/proc/self/fd/0"); err == nil && !strings.HasPrefix(link, "pipe:[") {
			return -1, end{}, errors.New("host: nothing is watched: stdin is a FIFO")
		}
		return holder(chain, end{inode: info.Ino, pipe: true})
	}
	return -1, end{}, errors.New("host: nothing is watched: stdin is neither a pipe nor a socket")
}

// holder returns the index of the topmost ancestor that holds the write end of a pipe: ancestors below it, such as a
// shell, may have inherited the descriptor. If no ancestor does and the descriptors of the parent cannot be read, for
// example because it runs as another user, holder returns the parent.
func holder(chain []*process, write end) (int, end, error) {
	at, hidden := -1, false
	for i, p := range chain {
		held, err := write.heldBy(p.Pid)
		if held {
			at = i
		} else if i == 0 && err != nil {
			hidden = true
		}
	}
	switch {
	case at >= 0:
		return at, write, nil
	case hidden && chain[0].Pid != 1: // process 1 may only have adopted this process
		return 0, write, nil
	}
	return -1, end{}, errors.New("host: nothing is watched: no ancestor holds the other end of stdin")
}
