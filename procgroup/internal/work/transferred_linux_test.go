package work

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

func connect(t *testing.T, network, address string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if client, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { err = errors.Join(client.Close(), server.Close()) })
	return client, server
}

// SPEC 6.12: what TCP connections carry is what the kernel says of the sockets of the members. Here this process
// is the only one, and it has both ends.
func TestTransferred(t *testing.T) {
	if procfs.Unhurried().TCPBytes() == nil {
		t.Skip("this kernel does not tell")
	}
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, network, address)
			self := map[procfs.Key]spent{{PID: os.Getpid()}: {}}
			m := meter{reader: procfs.Unhurried()}
			m.transferred(self)
			var sent, got uint64
			for _, n := range []int{1 << 20, 0, 1000} {
				go client.Write(make([]byte, n))
				if _, err := io.ReadFull(server, make([]byte, n)); err != nil {
					t.Fatal(err)
				}
				sent += uint64(n)
				// Received by one end, and perhaps acknowledged to the other only later.
				if got += m.transferred(self); got < sent || got > 2*sent {
					t.Errorf("%d bytes, want %d to %d", got, sent, 2*sent)
				}
			}
			if got := m.transferred(nil); got != 0 {
				t.Errorf("%d bytes without members", got)
			}
		})
	}
}
