package procgroup

// Notify gives the command a socket on which its processes send heartbeats and states, in the protocol of sd_notify(3),
// and environment variables with its limits. It is an [Option]. The zero Notify adds neither.
//
// NOTIFY_SOCKET contains the address of the socket, WATCHDOG_USEC the smallest idle limit in force, and TOOL_DEADLINE
// the time at which the first total limit expires, in the format RFC 3339, in UTC with milliseconds. Without an idle
// limit or a total limit, its variable is absent. WATCHDOG_PID is always removed. A datagram may contain several of
// these messages:
//
//   - WATCHDOG=1 is a heartbeat for the execution of the command and for all enclosing ones, as output is.
//   - STATUS=text sets the detail of these executions, and is not a heartbeat.
//   - EXTEND_TIMEOUT_USEC=n suspends their idle checks for n microseconds from now on, as [heartbeat.Hold] does; 0 ends
//     the suspension.
//   - READY=1 and STOPPING=1 are states; see [Notices].
//
// No message lengthens a total limit. Unknown messages are ignored, and on Linux also messages of processes that run
// neither as this user nor as the user of the command; elsewhere no other user can reach the socket. In each second the
// first 100 datagrams take effect. Further datagrams, and datagrams of more than 4096 bytes, are dropped and counted. A
// further datagram still takes effect if it contains one of the keys above, and no further datagram with that key has
// taken effect in the last 10 ms, because another process may have sent it. The socket is removed when the command
// ends, even if orphans are kept.
//
// On Windows, and on other systems without such sockets, Start returns an error that wraps [errors.ErrUnsupported] if
// Socket is set.
type Notify struct {
	Socket bool // gives the command a socket
}

// Notices contains the states that the processes of a command have sent to the socket of [Notify]. Without a socket it
// is zero.
type Notices struct {
	Ready    bool   // READY=1 was sent: the command has started up
	Stopping bool   // STOPPING=1 was sent: the command is about to end
	Status   string // newest STATUS=: one line of at most 2048 bytes, with spaces for control characters
	Dropped  int64  // number of datagrams that were dropped because they were too many or too large
}
