package work

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// The kernel counts per process the bytes of read(2) and write(2), and not those of recv(2) and send(2), which
// most network clients use. It counts the latter per TCP connection, and the descriptors of a process tell which
// connections it has open.
//
// This does not see UDP, and so QUIC, MPTCP, Unix sockets, connections in another network namespace, descriptors
// of another user's process, and what a connection carried between the last look and its end.

// maxDescriptors is how many descriptors of all members one look follows: that takes 36 ms on a busy
// machine. Asking for 8000 connections took 28 ms there; looks at the same time share the answer.
const maxDescriptors = 4096

// together is how far apart looks may begin that share a list of the connections.
const together = 100 * time.Millisecond

var dumps coalesce.Call[map[uint64]uint64]

// transferred returns what the connections of the members have carried since the last look. A connection that
// the last look did not see counts from its beginning.
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
			} else { // another connection has the number now
				n += bytes
			}
		case known: // the member that has it could not be read, and may be next time
			now[inode] = before
		}
	}
	m.sockets = now
	return n
}
