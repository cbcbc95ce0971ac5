//go:build unix && !linux && !aix

package sdnotify

// On these systems the system does not name senders. The mode of the socket's directory decides who can send.

const truncFlag = 0

var senderSize = 0

func tellSenders(int) error { return nil }

func sender([]byte) (uid int, ok bool) { return 0, false }
