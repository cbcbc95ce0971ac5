package proctree

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

// The kernel counts per process the bytes of read(2) and write(2), and not those of recv(2) and send(2),
// which most network clients use. These it counts per TCP connection, and sock_diag(7) shows the counters
// of all connections in the network namespace of the caller. The descriptors of a process tell which of
// them it has open.
//
// This does not see UDP, and so QUIC, MPTCP, Unix sockets, connections in another network namespace,
// descriptors of another user's process, and what a connection carried between the last look and its end.

// maxDescriptors is how many descriptors of all members one look follows: that takes 36 ms on a busy
// machine. To ask for the connections took 28 ms there, of 8000; looks at the same time share the answer.
const maxDescriptors = 4096

var dumps coalesce.Call[map[uint64]uint64]

// transferred is what the connections of the members have carried since the last look. One that the
// last look did not see counts from its beginning.
func (m *meter) transferred(members map[procKey]spent) (n uint64) {
	held := heldSockets(members)
	if len(held) == 0 && len(m.sockets) == 0 {
		return 0
	}
	all, _ := dumps.Join(together, func() (map[uint64]uint64, bool) { return tcpBytes(), true })
	now := make(map[uint64]uint64, len(held))
	for inode, bytes := range all {
		before, known := m.sockets[inode]
		switch {
		case held[inode]:
			if now[inode] = bytes; bytes >= before {
				n += bytes - before
			} else { // another connection has the number now
				n += bytes
			}
		case known: // its member could not be read, and may be next time
			now[inode] = before
		}
	}
	m.sockets = now
	return n
}

// heldSockets returns the inodes of the sockets that are open in the members.
func heldSockets(members map[procKey]spent) map[uint64]bool {
	held, left := make(map[uint64]bool), maxDescriptors
	for key := range members {
		dir, err := os.Open("/proc/" + strconv.Itoa(key.pid) + "/fd")
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(left)
		for _, name := range names {
			var buf [64]byte
			n, err := unix.Readlinkat(int(dir.Fd()), name, buf[:])
			if err != nil {
				continue
			}
			if text, ok := strings.CutPrefix(string(buf[:n]), "socket:["); ok {
				held[number([]byte(strings.TrimSuffix(text, "]")))] = true
			}
		}
		dir.Close()
		if left -= len(names); left <= 0 {
			break
		}
	}
	return held
}

// tcpBytes returns, by inode, how many bytes each TCP connection has received, and had acknowledged. It
// is nil where the kernel does not tell.
func tcpBytes() map[uint64]uint64 {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	all := make(map[uint64]uint64)
	buf := make([]byte, 64<<10)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if unix.Sendto(fd, diagRequest(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
			return nil
		}
		for more := true; more; {
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return nil
			}
			more = parseDiag(buf[:n], all)
		}
	}
	return all
}

// The sizes and places of linux/inet_diag.h.
const (
	diagInfo       = 2 // INET_DIAG_INFO, a struct tcp_info
	diagRequestLen = 56
	diagMsgLen     = 72
	diagInode      = 68
)

// diagRequest asks for all connections of a family, but not for sockets that listen.
func diagRequest(family uint8) []byte {
	const listen = 10
	b := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1], r[2] = family, unix.IPPROTO_TCP, 1<<(diagInfo-1)
	binary.NativeEndian.PutUint32(r[4:], ^uint32(1<<listen))
	return b
}

// parseDiag adds what is in some messages of the answer, and reports whether there will be more.
func parseDiag(b []byte, all map[uint64]uint64) (more bool) {
	const (
		acked    = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
		received = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	)
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return false
		}
		if binary.NativeEndian.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY { // the end, or an error
			return false
		}
		msg := b[unix.SizeofNlMsghdr:size]
		b = b[min((size+3)&^3, len(b)):]
		if len(msg) < diagMsgLen {
			continue
		}
		inode := uint64(binary.NativeEndian.Uint32(msg[diagInode:]))
		for attrs := msg[diagMsgLen:]; len(attrs) >= unix.SizeofNlAttr; {
			size := int(binary.NativeEndian.Uint16(attrs))
			if size < unix.SizeofNlAttr || size > len(attrs) {
				break
			}
			info := attrs[unix.SizeofNlAttr:size]
			if binary.NativeEndian.Uint16(attrs[2:]) == diagInfo && len(info) >= received+8 && inode != 0 {
				// The SYN and the FIN count for one each. That does not matter.
				all[inode] = binary.NativeEndian.Uint64(info[acked:]) + binary.NativeEndian.Uint64(info[received:])
			}
			attrs = attrs[min((size+3)&^3, len(attrs)):]
		}
	}
	return true
}
