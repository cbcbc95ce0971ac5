package sdnotify

// Name is that of a socket in its directory.
const Name = "0"

// A Socket receives datagrams. One goroutine may receive, and Stop is safe beside it.
type Socket interface {
	// Addr is for NOTIFY_SOCKET.
	Addr() string
	// Receive waits for a datagram and puts it into b. Where the datagram is larger, n is more than what b should have:
	// b has room for one byte more than a message. mine reports that its sender is a user who counts. After Stop,
	// Receive does not wait: it returns what is there, and then an error.
	Receive(b []byte) (n int, mine bool, err error)
	Stop()
	Close() error
}
