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

// find returns the host, and the processes between it and this one, from the parent up.
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

// procIsOurs reports whether there is a /proc, and not that of another PID namespace, in which the
// numbers mean other processes.
var procIsOurs = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// patience is how long the system may take to answer a question about a process: the process may be busy, and the
// answer may have to wait for a file system that does not answer. After that the answer counts as unknown.
const patience = time.Second

// ask calls read, which asks the system about processes. answered is false if the system does not answer in time.
func ask[T any](read func(r *procfs.Reader) T) (value T, answered bool) {
	return procfs.Ask(procfs.NewPatience(patience), read)
}

// stat reads the process with the id pid. It reports false if there is none, or if the system does not answer in
// time.
func stat(pid int) (p procfs.Process, ok bool) {
	p, _ = ask(func(r *procfs.Reader) procfs.Process {
		p, _ := r.Process(pid)
		return p
	})
	return p, p.PID != 0
}

// maxRestarts bounds how often parents may end while they are looked at.
const maxRestarts = 100

// ancestors opens the ancestors of this process that it can see, the parent first.
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
			// Its number was the parent's before it was opened, and still is. So it was not free in
			// between, and the descriptor is the parent's.
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

// onlyParent opens the parent where no other ancestor can be seen.
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

// hostOf returns the index of the host among the ancestors, and the other end of stdin. The index is
// -1 if there is an error.
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
		// A FIFO has a path. A process that opens it later need not know this one.
		if link, err := os.Readlink("/proc/self/fd/0"); err == nil && !strings.HasPrefix(link, "pipe:[") {
			return -1, end{}, errors.New("host: nothing is watched: stdin is a FIFO")
		}
		return holder(chain, end{inode: info.Ino, pipe: true})
	}
	return -1, end{}, errors.New("host: nothing is watched: stdin is neither a pipe nor a socket")
}

// holder returns the topmost ancestor that holds the write end of a pipe: those below it, such as a
// shell, may have inherited the descriptor.
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
	case hidden && chain[0].Pid != 1: // another user's; what has adopted this process is not meant
		return 0, write, nil
	}
	return -1, end{}, errors.New("host: nothing is watched: no ancestor holds the other end of stdin")
}
