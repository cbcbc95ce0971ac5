package sdnotify

// Name is the name of a socket in its directory.
const Name = "0"

// A Socket receives datagrams. Only one goroutine may receive; Stop may be called at the same time.
type Socket interface {
	// Addr returns the address of the socket as a value of NOTIFY_SOCKET.
	Addr() string
	// Receive waits for a datagram and stores it in b, which must have room for MaxSize+1 bytes, so that n is greater
	// than MaxSize if the datagram is too large. mine reports whether the sender runs as this user or as the user of
	// the command; it is true if the system does not name senders. After Stop, Receive does not wait: it returns the
	// datagrams that have arrived, and then os.ErrClosed.
	Receive(b []byte) (n int, mine bool, err error)
	// Stop makes Receive return the datagrams that have arrived, and then an error, without waiting. The socket stays
	// open.
	Stop()
	// Close closes the socket.
	Close() error
}
