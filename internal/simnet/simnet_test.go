package simnet_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
)

// A server that says everything back, and what became of a client's bytes, to the nanosecond.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var mu sync.Mutex // a link that is cut and the next one both tell what they see
		var seen []string
		note := func(what string) func([]byte) {
			return func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf("%v %s %s", time.Since(begun), what, b))
			}
		}
		l := simnet.New(func() (net.Conn, error) {
			near, far := net.Pipe()
			go func() { io.Copy(far, far); far.Close() }()
			return near, nil
		}, func() (sent, received func([]byte)) { return note("sent"), note("received") })
		c, err := l.Dial("tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		say := func(s string) {
			t.Helper()
			if _, err := io.WriteString(c, s); err != nil {
				t.Error(err)
			}
		}
		hear := func() {
			t.Helper()
			if _, err := c.Read(buf); err != nil {
				t.Error(err)
			}
		}
		say("a")
		hear()
		l.Delay(simnet.ToServer, time.Second)
		l.Delay(simnet.ToClient, 2*time.Second)
		say("b")
		hear()
		l.Delay(simnet.ToServer, 0)
		l.Delay(simnet.ToClient, 0)
		l.Hold(simnet.ToServer)
		say("c") // does not wait, though nobody receives it
		say("d")
		time.AfterFunc(time.Minute, l.Release)
		hear()
		hear()
		want := []string{"0s sent a", "0s received a", "0s sent b", "3s received b", "3s sent c", "3s sent d", "1m3s received c", "1m3s received d"}
		synctest.Wait()
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		l.Hold(simnet.ToServer, simnet.ToClient)
		say("e")
		l.Cut()
		if _, err := c.Read(buf); err != io.EOF {
			t.Errorf("when it was cut: %v", err)
		}
		if _, err := l.Dial("tcp", "server"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("while it is cut: %v", err)
		}
		l.Mend()
		l.Release()
		if c, err = l.Dial("tcp", "server"); err != nil {
			t.Fatal(err)
		}
		say("f")
		hear()
		c.Close()
		l.Handshake = [2]int{simnet.ToServer: 1, simnet.ToClient: 1}
		l.Hold(simnet.ToServer, simnet.ToClient)
		begun = time.Now()
		time.AfterFunc(time.Hour, l.Release)
		if c, err = l.Dial("tcp", "server"); err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{0, time.Hour} {
			say("g")
			if hear(); time.Since(begun) != want {
				t.Errorf("packet %d after %v, want %v", i, time.Since(begun), want)
			}
		}
		c.Close()
	})
}
