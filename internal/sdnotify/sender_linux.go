package sdnotify

import "golang.org/x/sys/unix"

// truncFlag makes recvmsg(2) return the size of the whole datagram.
const truncFlag = unix.MSG_TRUNC

var senderSize = unix.CmsgSpace(unix.SizeofUcred)

// tellSenders has the system add to each message who has sent it.
func tellSenders(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }

// sender returns the user who has sent a message. One that the system does not name is nobody.
func sender(oob []byte) (uid int, ok bool) {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(all) != 1 {
		return -1, true
	}
	cred, err := unix.ParseUnixCredentials(&all[0])
	if err != nil {
		return -1, true
	}
	return int(cred.Uid), true
}
