package host

import (
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// An end identifies the other end of stdin. heldBy is false for the zero end.
type end struct {
	inode uint64
	pipe  bool // the end is the write end of the pipe with that inode; otherwise it is the socket with that inode
}

// heldBy reports whether the process pid has e open. The error says that its descriptors cannot be read.
func (e end) heldBy(pid int) (bool, error) {
	if e.inode == 0 {
		return false, nil
	}
	if !procIsOurs() {
		return false, errors.New("no /proc of this PID namespace")
	}
	kind := "socket:["
	if e.pipe {
		kind = "pipe:["
	}
	link := kind + strconv.FormatUint(e.inode, 10) + "]"
	type answer struct {
		held bool
		err  error
	}
	a, answered := ask(func(r *procfs.Reader) (a answer) {
		a.held, a.err = r.Holds(pid, link, e.pipe)
		return a
	})
	if !answered {
		return false, procfs.ErrLate
	}
	return a.held, a.err
}

// These are sizes and constants of linux/unix_diag.h.
const (
	unixDiagRequestLen = 24
	unixDiagMsgLen     = 16
	unixDiagShowPeer   = 4
	unixDiagPeer       = 2 // UNIX_DIAG_PEER, an attribute with an inode
)

// otherEnd returns the socket that is connected to the Unix socket inode, or the zero end if the kernel does not report
// it.
func otherEnd(inode uint64) end {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return end{}
	}
	defer unix.Close(fd)
	if unix.Sendto(fd, peerRequest(uint32(inode)), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return end{}
	}
	// The kernel has queued the answer before Sendto returns, so Recvfrom need not wait.
	var buf [4 << 10]byte
	n, _, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
	if err != nil {
		return end{}
	}
	return end{inode: uint64(parsePeer(buf[:n]))}
}

// peerRequest returns a netlink message that requests the peer of one socket.
func peerRequest(inode uint32) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+unixDiagRequestLen)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.SizeofNlMsghdr:]
	r[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(r[4:], ^uint32(0)) // a socket in any state
	binary.NativeEndian.PutUint32(r[8:], inode)
	binary.NativeEndian.PutUint32(r[12:], unixDiagShowPeer)
	binary.NativeEndian.PutUint64(r[16:], ^uint64(0)) // and with any cookie
	return b
}

// parsePeer returns the inode of the peer in b, an answer to a peerRequest, or 0 if b does not contain it.
func parsePeer(b []byte) uint32 {
	if len(b) < unix.SizeofNlMsghdr+unixDiagMsgLen || binary.NativeEndian.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return 0
	}
	b = b[:min(len(b), int(binary.NativeEndian.Uint32(b)))]
	if len(b) < unix.SizeofNlMsghdr+unixDiagMsgLen {
		return 0
	}
	for attrs := b[unix.SizeofNlMsghdr+unixDiagMsgLen:]; len(attrs) >= unix.SizeofNlAttr; {
		size := int(binary.NativeEndian.Uint16(attrs))
		if size < unix.SizeofNlAttr || size > len(attrs) {
			return 0
		}
		if value := attrs[unix.SizeofNlAttr:size]; binary.NativeEndian.Uint16(attrs[2:]) == unixDiagPeer && len(value) == 4 {
			return binary.NativeEndian.Uint32(value)
		}
		attrs = attrs[min((size+3)&^3, len(attrs)):]
	}
	return 0
}
