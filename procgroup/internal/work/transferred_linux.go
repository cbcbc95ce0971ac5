package work

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// The kernel counts the bytes of read(2) and write(2) by process, but not those of recv(2) and send(2), which most
// network clients use. It counts the latter by TCP connection, and the descriptors of a process show its connections.
//
// The figures lack UDP, and so QUIC, MPTCP, Unix sockets, connections in other network namespaces, the connections of
// processes whose descriptors may not be read, and what a connection has carried between the last look and its end.

// maxDescriptors bounds the descriptors of all members that one look reads. To read that many takes 36 ms on a busy
// machine. To list 8000 connections took 28 ms there; concurrent looks share the list.
const maxDescriptors = 4096

// together bounds the age of a read of all connections in progress that a look shares.
const together = 100 * time.Millisecond

var dumps coalesce.Call[map[uint64]uint64]

// transferred returns the bytes that the connections of the members have carried since the last look. A connection that
// the last look did not see counts from its start.
func (m *meter) transferred(members map[procfs.Key]spent) (n uint64) {
	held, left := make(map[uint64]bool), maxDescriptors
	for key := range members {
		if left <= 0 {
			break
		}
		left -= m.reader.Sockets(key.PID, left, func(inode uint64) { held[inode] = true })
	}
	if len(held) == 0 && len(m.sockets) == 0 {
		return 0
	}
	all, _ := dumps.Join(together, func() (map[uint64]uint64, bool) {
		all, _ := procfs.Ask(procfs.NewPatience(time.Second), (*procfs.Reader).TCPBytes)
		return all, true
	})
	now := make(map[uint64]uint64, len(held))
	for inode, bytes := range all {
		before, known := m.sockets[inode]
		switch {
		case held[inode]:
			if now[inode] = bytes; bytes >= before {
				n += bytes - before
			} else { // the inode now belongs to another connection
				n += bytes
			}
		case known: // its process could not be read, but may be at the next look
			now[inode] = before
		}
	}
	m.sockets = now
	return n
}
