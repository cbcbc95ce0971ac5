package sdnotify

import "golang.org/x/sys/unix"

// truncFlag makes recvmsg(2) return the size of the whole datagram.
const truncFlag = unix.MSG_TRUNC

var senderSize = unix.CmsgSpace(unix.SizeofUcred)

// tellSenders makes the system add the sender's credentials to each message.
func tellSenders(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }

// sender returns the user id of the sender of a message, from the control data oob, or -1 if oob does not name one. ok
// is true: this system names senders.
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
