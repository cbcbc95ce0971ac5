//go:build unix && !aix

package sdnotify_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// SPEC 18.2: what is sent arrives, with a path and, on Linux, where the path is too long. What was sent before Stop is there
// after it.
func TestSocket(t *testing.T) {
	short, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	long := filepath.Join(short, strings.Repeat("x", 110))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, dir, prefix string }{{"a path", short, short + "/"}, {"a path that is too long", long, "@"}} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sdnotify.Listen(tt.dir, nil)
			if tt.prefix == "@" && runtime.GOOS != "linux" {
				if err == nil {
					t.Fatal("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if addr := s.Addr(); !strings.HasPrefix(addr, tt.prefix) {
				t.Errorf("the address is %s", addr)
			}
			b := make([]byte, sdnotify.MaxSize+1)
			receive := func(want string) {
				t.Helper()
				if n, mine, err := s.Receive(b); err != nil || !mine || string(b[:n]) != want {
					t.Errorf("received %q, %v, %v, want %q", b[:n], mine, err, want)
				}
			}
			send := func(m sdnotify.Message) {
				t.Helper()
				if err := sdnotify.Send(s.Addr(), m.String()); err != nil {
					t.Error(err)
				}
			}
			send(sdnotify.Message{Beat: true, Said: true, Status: "a\nb"})
			receive("STATUS=a b\nWATCHDOG=1")
			raw, err := net.Dial("unixgram", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			if _, err := raw.Write(make([]byte, 3*sdnotify.MaxSize)); err != nil {
				t.Error(err)
			}
			if n, _, err := s.Receive(b); err != nil || n <= sdnotify.MaxSize {
				t.Errorf("of a datagram that is too large %d bytes, %v", n, err)
			}
			go func() {
				time.Sleep(10 * time.Millisecond) // mostly the receiver waits by then
				send(sdnotify.Message{Ready: true})
				s.Stop()
			}()
			receive("READY=1")
			if n, _, err := s.Receive(b); !errors.Is(err, os.ErrClosed) {
				t.Errorf("after Stop: %d bytes, %v", n, err)
			}
		})
	}
}

// A receiver that does not read holds nobody up for long.
func TestSendToDeaf(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	for range 100_000 {
		if err = sdnotify.Send(deaf.LocalAddr().String(), "WATCHDOG=1"); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) && runtime.GOOS == "linux" {
		t.Errorf("the queue is never full, or: %v", err)
	}
	for _, addr := range []string{"", "relative", "vsock:2:3"} {
		if err := sdnotify.Send(addr, "WATCHDOG=1"); err == nil {
			t.Errorf("sent to %q", addr)
		}
	}
}

// A heartbeat on both sides together: connecting, sending, receiving and parsing it.
func BenchmarkBeat(b *testing.B) {
	dir := b.TempDir()
	s, err := sdnotify.Listen(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	buf := make([]byte, sdnotify.MaxSize+1)
	for b.Loop() {
		if err := sdnotify.Send(s.Addr(), "STATUS=step 3 of 7\nWATCHDOG=1"); err != nil {
			b.Fatal(err)
		}
		n, _, err := s.Receive(buf)
		if m := sdnotify.Parse(buf[:n]); err != nil || !m.Beat {
			b.Fatal(m, err)
		}
	}
}
