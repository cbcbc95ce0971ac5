//go:build unix && !aix

package sdnotify

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxPath is the greatest length of the path of a socket. The array for the path, of 104 or 108 bytes, also has a zero
// byte.
var maxPath = len(unix.RawSockaddrUnix{}.Path) - 1

// A socket implements Socket. users holds the user ids whose messages are mine.
type socket struct {
	conn  *net.UnixConn
	raw   syscall.RawConn
	users map[int]bool

	stopped atomic.Bool
}

// Listen makes a socket in the directory dir, which only this user can enter. If the path is too long, the socket is in
// the abstract namespace on Linux, and elsewhere Listen returns an error. If a command started with attr runs as
// another user, Listen makes that user the owner of the directory and of the socket.
func Listen(dir string, attr *syscall.SysProcAttr) (Socket, error) {
	user := os.Geteuid()
	if attr != nil && attr.Credential != nil {
		user = int(attr.Credential.Uid)
	}
	name := filepath.Join(dir, Name)
	if len(name) > maxPath {
		if runtime.GOOS != "linux" {
			return nil, fmt.Errorf("the path of a socket has at most %d bytes: %s", maxPath, name)
		}
		name = "@procgroup-" + rand.Text() // the first byte becomes a zero
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, users: map[int]bool{os.Getuid(): true, os.Geteuid(): true, user: true}}
	if s.raw, err = conn.SyscallConn(); err == nil {
		var unknown error
		err = s.raw.Control(func(fd uintptr) { unknown = tellSenders(int(fd)) })
		err = errors.Join(err, unknown)
	}
	if err == nil && name[0] != '@' && user != os.Geteuid() {
		err = errors.Join(os.Lchown(dir, user, -1), os.Lchown(name, user, -1))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) Addr() string { return s.conn.LocalAddr().String() }

// Receive gives the system a control buffer with room for the sender and no more. The system then closes descriptors
// that come with a message, which is what sd_notify_barrier(3) waits for.
func (s *socket) Receive(b []byte) (n int, mine bool, err error) {
	var control [64]byte
	oob := control[:senderSize]
	again := func(fd uintptr) bool {
		for {
			var size int
			n, size, _, _, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_DONTWAIT|truncFlag)
			if err != unix.EINTR {
				uid, named := sender(oob[:size])
				mine = err == nil && (!named || s.users[uid])
				return err != unix.EAGAIN
			}
		}
	}
	if failed := s.raw.Read(again); failed == nil {
		return n, mine, err
	} else if !s.stopped.Load() {
		return 0, false, failed
	}
	there := false
	if failed := s.raw.Control(func(fd uintptr) { there = again(fd) }); failed != nil || !there {
		return 0, false, os.ErrClosed
	}
	return n, mine, err
}

func (s *socket) Stop() {
	s.stopped.Store(true)
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
}

func (s *socket) Close() error { return s.conn.Close() }
