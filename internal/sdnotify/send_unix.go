//go:build unix

package sdnotify

import (
	"errors"
	"net"
	"strings"
	"time"
)

// sendTime bounds a send to a receiver that does not read. Its queue is full then, and a heartbeat in it as good as this.
const sendTime = 100 * time.Millisecond

// Send sends the text of a message to addr, a value of NOTIFY_SOCKET. It waits for a receiver that does not read, but not for long.
func Send(addr, text string) error {
	if !strings.HasPrefix(addr, "/") && !strings.HasPrefix(addr, "@") {
		return errors.New("the address of the socket is neither a path nor an abstract name: " + addr)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(sendTime))
	_, err = conn.Write([]byte(text))
	return err
}
