package procgroup

// Notify lets the processes of the command say that they work, in the protocol of sd_notify(3), and tells them their
// limits. It is an [Option]. With the zero Notify there is no socket and no variable.
//
// The environment of the command has the address of the socket in NOTIFY_SOCKET; in WATCHDOG_USEC the smallest idle
// limit in force; and in TOOL_DEADLINE the instant of the first total, RFC 3339 in UTC with milliseconds. Without
// such a limit its variable is absent, and so is WATCHDOG_PID. These messages count, several in one datagram as
// well:
//
//   - WATCHDOG=1 is a heartbeat for the execution of the command and for all enclosing ones, as output is.
//   - STATUS=text sets the detail of these executions, and is not a heartbeat.
//   - EXTEND_TIMEOUT_USEC=n suspends their idle checks for n microseconds from now on, as [heartbeat.Hold] does; 0
//     ends the suspension.
//   - READY=1 and STOPPING=1 are states; see [Notices].
//
// No message lengthens a total. Unknown messages are ignored, and on Linux also messages of other users' processes;
// elsewhere only this user can reach the socket. In a second 100 datagrams are read; further ones, and datagrams of
// more than 4096 bytes, are dropped and counted. A further datagram is read nevertheless if it has one of these
// keys and no further one with that key was read in the last 10 ms: another process may have sent it. The socket is
// removed when the command ends, even if orphans are kept.
//
// On Windows Start returns an error that wraps [errors.ErrUnsupported].
type Notify struct {
	Socket bool // the command gets a socket
}

// Notices are what the processes of a command have said of themselves on the socket of [Notify]. Without a socket
// they are zero.
type Notices struct {
	Ready    bool   // READY=1: the command has started up
	Stopping bool   // STOPPING=1: the command is about to end
	Status   string // of the newest STATUS=, at most 2048 bytes of one line; control characters are blanks
	Dropped  int64  // datagrams that were too many or too large
}
