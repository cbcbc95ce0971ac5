package sdnotify

// Name is the name of a socket in its directory.
const Name = "0"

// A Socket receives datagrams. Only one goroutine may receive; Stop may be called at the same time.
type Socket interface {
	// Addr returns the address of the socket, as NOTIFY_SOCKET has it.
	Addr() string
	// Receive waits for a datagram and puts it into b, which must have room for MaxSize bytes and one more: n is above
	// MaxSize if the datagram is larger than a message may be. mine reports whether its sender is a user who counts.
	// After Stop, Receive does not wait: it returns what is there, and then an error.
	Receive(b []byte) (n int, mine bool, err error)
	Stop()
	Close() error
}
