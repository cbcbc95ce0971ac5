package sdnotify

// Name is the name of a socket in its directory.
const Name = "0"

// A Socket receives datagrams. Only one goroutine may receive; Stop may be called at the same time.
type Socket interface {
	// Addr returns the address of the socket in the form of the variable NOTIFY_SOCKET.
	Addr() string
	// Receive waits for a datagram and puts it into b, which must have room for MaxSize bytes and one more: n is above
	// MaxSize if the datagram is larger than a message may be. mine reports whether the sender is this user or that of
	// the command; it is true where the system does not tell senders. After Stop, Receive does not wait: it returns the
	// datagrams that have arrived, and then an error.
	Receive(b []byte) (n int, mine bool, err error)
	// Stop ends a Receive in progress. The socket stays open.
	Stop()
	// Close closes the socket.
	Close() error
}
