//go:build linux

package procgroup_test

import (
	"context"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// download receives from a server until that ends, and throws everything away. It uses recv(2), as
// curl and Python do: bytes that go through read(2), as with Go, count as read.
func download(a []string) int {
	conn, err := net.Dial("tcp", a[0])
	if err != nil {
		panic(err)
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	for buf := make([]byte, 4<<10); ; {
		if n, _, err := unix.Recvfrom(int(file.Fd()), buf, 0); err != unix.EINTR && n <= 0 {
			return 0
		}
	}
}

// serve sends each client that many bytes ten times a second, and returns its address.
func serve(t *testing.T, chunk int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for err := error(nil); err == nil; time.Sleep(100 * time.Millisecond) {
					_, err = conn.Write(make([]byte, chunk))
					if chunk == 0 { // a client that has gone would not be noticed
						_, err = conn.Read(make([]byte, 1))
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// SPEC 6.12: a download is work, though it is slow and goes into memory; keep-alive messages are not.
func TestActivityDownload(t *testing.T) {
	t.Parallel()
	const idle = 15 * time.Second
	plain() // building it takes longer than the limit
	containments := []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Helper}
	if _, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(procgroup.Cgroup)); err == nil {
		containments = append(containments, procgroup.Cgroup)
	}
	var all sync.WaitGroup
	for name, tt := range map[string]struct {
		chunk    int
		activity procgroup.Activity
		lives    bool
	}{
		"40 KiB a second":                {4 << 10, procgroup.Activity{IO: true}, true},
		"1 MiB a second":                 {100 << 10, procgroup.Activity{IO: true}, true},
		"1 KiB a second":                 {100, procgroup.Activity{IO: true}, false},
		"1 KiB a second, which counts":   {100, procgroup.Activity{IO: true, NetRate: 100}, true},
		"nothing":                        {0, procgroup.Activity{IO: true}, false},
		"40 KiB a second, not asked for": {4 << 10, procgroup.Activity{CPU: true, CPURate: 2}, false},
	} {
		address := serve(t, tt.chunk)
		for _, c := range containments {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := procgroup.IdleTimeout
				if tt.lives {
					want = procgroup.Aborted
					time.AfterFunc(lived(idle), cancel)
				}
				r, err := procgroup.Run(ctx, command("download", address), procgroup.WithContainment(c), tt.activity,
					procgroup.WithLimits(timeout.Config{Idle: idle}), procgroup.WithKillGrace(-1))
				if r == nil || r.Reason != want {
					t.Errorf("%s, %v: %v\n%+v", name, c, err, r)
				}
			})
		}
	}
	all.Wait()
}
