package procfs

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sockets calls fn with the inode of each open socket of a process. It reads at most as many descriptors as first says,
// and returns the number that it has read.
func (r *Reader) Sockets(pid, first int, fn func(inode uint64)) (looked int) {
	_ = r.ask("Sockets", pid, func() {
		dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			return
		}
		defer dir.Close()
		names, _ := dir.Readdirnames(first)
		for _, name := range names {
			var buf [64]byte
			n, err := unix.Readlinkat(int(dir.Fd()), name, buf[:])
			if err != nil {
				continue
			}
			if text, ok := strings.CutPrefix(string(buf[:n]), "socket:["); ok {
				fn(Uint([]byte(strings.TrimSuffix(text, "]"))))
			}
		}
		looked = len(names)
	})
	return looked
}

// TCPBytes returns, by inode of the socket, the bytes that each TCP connection has received, plus those that it has
// sent and that were acknowledged. It lists the connections in the network namespace of this process. It returns nil
// if the kernel refuses.
func (r *Reader) TCPBytes() (all map[uint64]uint64) {
	_ = r.ask("TCPBytes", 0, func() { all = tcpBytes() })
	return all
}

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

// These are constants, sizes and offsets of linux/inet_diag.h.
const (
	diagInfo       = 2 // INET_DIAG_INFO, a struct tcp_info
	diagRequestLen = 56
	diagMsgLen     = 72
	diagInode      = 68
)

// diagRequest returns a request for all TCP sockets of an address family that are not listening.
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

// parseDiag adds the connections in b, a part of the reply, to all. It reports whether more parts follow.
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
				// The counters include one byte each for the SYN and the FIN, which does not matter.
				all[inode] = binary.NativeEndian.Uint64(info[acked:]) + binary.NativeEndian.Uint64(info[received:])
			}
			attrs = attrs[min((size+3)&^3, len(attrs)):]
		}
	}
	return true
}

// These are constants and sizes of linux/unix_diag.h.
const (
	unixRequestLen = 24
	unixMsgLen     = 16
	unixShowPeer   = 4
	unixPeer       = 2 // UNIX_DIAG_PEER, an inode
)

// UnixPeer returns the inode of the socket to which a Unix socket is connected, such as the other end of a
// socketpair(2). ok is false if the socket has no peer, or the kernel refuses.
func (r *Reader) UnixPeer(inode uint64) (peer uint64, ok bool) {
	late := r.ask("UnixPeer", 0, func() { peer, ok = unixPeerOf(inode) })
	return peer, ok && late == nil
}

func unixPeerOf(inode uint64) (peer uint64, ok bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	b := make([]byte, unix.SizeofNlMsghdr+unixRequestLen)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.SizeofNlMsghdr:]
	r[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(r[4:], ^uint32(0))
	binary.NativeEndian.PutUint32(r[8:], uint32(inode))
	binary.NativeEndian.PutUint32(r[12:], unixShowPeer)
	binary.NativeEndian.PutUint64(r[16:], ^uint64(0)) // any cookie
	if unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return 0, false
	}
	buf := make([]byte, 4<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, false
		}
		return parseUnixPeer(buf[:n])
	}
}

// parseUnixPeer parses the reply to a request about one Unix socket. ok is false if the socket has no peer, or does not
// exist.
func parseUnixPeer(b []byte) (peer uint64, ok bool) {
	if len(b) < unix.SizeofNlMsghdr+unixMsgLen || binary.NativeEndian.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return 0, false
	}
	for attrs := b[unix.SizeofNlMsghdr+unixMsgLen:]; len(attrs) >= unix.SizeofNlAttr; {
		size := int(binary.NativeEndian.Uint16(attrs))
		if size < unix.SizeofNlAttr || size > len(attrs) {
			return 0, false
		}
		if binary.NativeEndian.Uint16(attrs[2:]) == unixPeer && size >= unix.SizeofNlAttr+4 {
			peer = uint64(binary.NativeEndian.Uint32(attrs[unix.SizeofNlAttr:]))
			return peer, peer != 0
		}
		attrs = attrs[min((size+3)&^3, len(attrs)):]
	}
	return 0, false
}
