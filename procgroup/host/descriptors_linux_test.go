package host

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// The other end of a socket and of a pipe is found among descriptors, and is not found once closed.
func TestHeldBy(t *testing.T) {
	var ends [2]int
	for kind, make := range map[string]func() (end, error){
		"pipe": func() (end, error) {
			err := unix.Pipe2(ends[:], unix.O_CLOEXEC)
			return end{inode: inode(t, ends[0]), pipe: true}, err
		},
		"socket": func() (other end, err error) {
			ends, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			return otherEnd(inode(t, ends[0])), err
		},
	} {
		other, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if held, err := other.heldBy(os.Getpid()); !held || err != nil {
			t.Errorf("%s: held %v, %v", kind, held, err)
		}
		unix.Close(ends[1])
		if held, err := other.heldBy(os.Getpid()); held || err != nil {
			t.Errorf("%s: held %v, %v after it was closed", kind, held, err)
		}
		unix.Close(ends[0])
	}
	if held, err := (end{}).heldBy(os.Getpid()); held || err != nil {
		t.Errorf("the zero end: held %v, %v", held, err)
	}
	if _, err := (end{inode: 1, pipe: true}).heldBy(1 << 30); err == nil {
		t.Error("no error for a process that does not exist")
	}
}

func inode(t *testing.T, fd int) uint64 {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		t.Fatal(err)
	}
	return info.Ino
}

func FuzzParsePeer(f *testing.F) {
	f.Add(append(peerRequest(7), 8, 0, 2, 0, 9, 0, 0, 0))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, b []byte) { parsePeer(b) })
}
