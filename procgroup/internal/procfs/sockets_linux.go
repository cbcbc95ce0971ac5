package procfs

import (
	"encoding/binary"
	"iter"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sockets calls fn with the inode of each open socket of a process. It looks only at the first descriptors, at most
// first of them, which must be above 0, and returns their number: 0 if they cannot be listed.
func (r *Reader) Sockets(pid, first int, fn func(inode uint64)) (looked int) {
	_ = r.ask("Sockets", pid, func() {
		dir, err := r.openDir("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			return
		}
		defer dir.Close()
		looked, _ = eachLink(dir, first, func(_, link string) bool {
			if inode, ok := (&Open{Link: link}).Inode("socket"); ok {
				fn(inode)
			}
			return true
		})
	})
	return looked
}

// TCPBytes returns, by inode of the socket, the bytes that each TCP connection has received, plus those that it has
// sent and that were acknowledged. It lists the connections in the network namespace of this process. It returns nil
// if the kernel refuses.
func (r *Reader) TCPBytes() (all map[uint64]uint64) {
	_ = r.ask("TCPBytes", 0, func() {
		found := make(map[uint64]uint64)
		parse := func(reply []byte) (more bool) { return parseTCP(reply, found) }
		if diag(unix.NLM_F_DUMP, tcpRequest(unix.AF_INET), parse) && diag(unix.NLM_F_DUMP, tcpRequest(unix.AF_INET6), parse) {
			all = found
		}
	})
	return all
}

// UnixPeer returns the inode of the socket to which a Unix socket is connected, such as the other end of a
// socketpair(2). ok is false if the socket has no peer, or the kernel refuses.
func (r *Reader) UnixPeer(inode uint64) (peer uint64, ok bool) {
	_ = r.ask("UnixPeer", 0, func() {
		diag(0, unixRequest(inode), func(reply []byte) (more bool) {
			peer = parseUnix(reply)
			return false
		})
	})
	return peer, peer != 0
}

// diag sends a request of sock_diag(7), and calls parse with each part of the reply, as long as parse returns true. It
// reports whether the kernel has replied.
func diag(flags uint16, request []byte, parse func(reply []byte) (more bool)) bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	b := make([]byte, unix.SizeofNlMsghdr, 128)
	binary.NativeEndian.PutUint32(b, uint32(len(b)+len(request)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	if unix.Sendto(fd, append(b, request...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return false
	}
	buf := make([]byte, 64<<10)
	for more := true; more; {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		more = parse(buf[:n])
	}
	return true
}

// messages calls fn with the messages in b, a part of a reply, and with their attributes after the first head bytes. It
// reports whether more parts follow.
func messages(b []byte, head int, fn func(msg []byte, attrs iter.Seq2[uint16, []byte])) (more bool) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return false
		}
		if binary.NativeEndian.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY { // the end, or an error
			return false
		}
		if msg := b[unix.SizeofNlMsghdr:size]; len(msg) >= head {
			fn(msg, attributes(msg[head:]))
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return true
}

// attributes yields the types and the values of the attributes in b.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			size := int(binary.NativeEndian.Uint16(b))
			if size < unix.SizeofNlAttr || size > len(b) || !yield(binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofNlAttr:size]) {
				return
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}

// These are constants, sizes and offsets of linux/inet_diag.h.
const (
	tcpInfo       = 2 // INET_DIAG_INFO, a struct tcp_info
	tcpRequestLen = 56
	tcpMsgLen     = 72
	tcpInode      = 68
)

// tcpRequest returns a request for all TCP sockets of an address family that are not listening.
func tcpRequest(family uint8) []byte {
	const listen = 10
	b := make([]byte, tcpRequestLen)
	b[0], b[1], b[2] = family, unix.IPPROTO_TCP, 1<<(tcpInfo-1)
	binary.NativeEndian.PutUint32(b[4:], ^uint32(1<<listen))
	return b
}

// parseTCP adds the connections in b, a part of the reply, to all. It reports whether more parts follow.
func parseTCP(b []byte, all map[uint64]uint64) (more bool) {
	const (
		acked    = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
		received = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	)
	return messages(b, tcpMsgLen, func(msg []byte, attrs iter.Seq2[uint16, []byte]) {
		inode := uint64(binary.NativeEndian.Uint32(msg[tcpInode:]))
		for kind, info := range attrs {
			if kind == tcpInfo && len(info) >= received+8 && inode != 0 {
				// The counters include one byte each for the SYN and the FIN, which does not matter.
				all[inode] = binary.NativeEndian.Uint64(info[acked:]) + binary.NativeEndian.Uint64(info[received:])
			}
		}
	})
}

// These are constants and sizes of linux/unix_diag.h.
const (
	unixRequestLen = 24
	unixMsgLen     = 16
	unixShowPeer   = 4
	unixPeer       = 2 // UNIX_DIAG_PEER, an inode
)

// unixRequest returns a request for one Unix socket.
func unixRequest(inode uint64) []byte {
	b := make([]byte, unixRequestLen)
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0))
	binary.NativeEndian.PutUint32(b[8:], uint32(inode))
	binary.NativeEndian.PutUint32(b[12:], unixShowPeer)
	binary.NativeEndian.PutUint64(b[16:], ^uint64(0)) // any cookie
	return b
}

// parseUnix returns the peer in the reply to a request for one Unix socket, or 0 if the socket has none or does not
// exist.
func parseUnix(b []byte) (peer uint64) {
	messages(b, unixMsgLen, func(_ []byte, attrs iter.Seq2[uint16, []byte]) {
		for kind, inode := range attrs {
			if kind == unixPeer && len(inode) >= 4 {
				peer = uint64(binary.NativeEndian.Uint32(inode))
			}
		}
	})
	return peer
}
