//go:build unix && !linux && !aix

package sdnotify

// Elsewhere the directory of the socket decides who may send.

const truncFlag = 0

var senderSize = 0

func tellSenders(int) error { return nil }

func sender([]byte) (uid int, ok bool) { return 0, false }
