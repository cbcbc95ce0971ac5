//go:build unix

package simulate_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// notified is what the datagrams that were read mean.
type notified struct {
	beats    []time.Time
	holds    []hold  // of the idle check; one ends when the next begins
	statuses []Heard // with the status alone
	said     procgroup.Notices
	burst    int // most that were dropped at one instant at which the command ran
}

// notified judges the datagrams that were read.
func (s *seen) notified() (n notified) {
	var since, dropped time.Time
	late := map[string]time.Time{}
	taken, burst := 0, 0
	end, _ := s.stopTime()
	for _, h := range s.m.Heard {
		if h.At.Sub(since) >= time.Second {
			since, taken = h.At, 0
		}
		if taken++; len(h.Text) > 4096 || taken > 100 && !rare(late, h) {
			n.said.Dropped++
			if !h.At.Equal(dropped) {
				dropped, burst = h.At, 0
			}
			if burst++; h.At.Before(end) {
				n.burst = max(n.burst, burst)
			}
			continue
		}
		for line := range strings.SplitSeq(h.Text, "\n") {
			key, value, _ := strings.Cut(line, "=")
			switch key {
			case "WATCHDOG":
				n.beats = append(n.beats, h.At)
			case "READY":
				n.said.Ready = true
			case "STOPPING":
				n.said.Stopping = true
			case "STATUS":
				n.said.Status = value
				n.statuses = append(n.statuses, Heard{At: h.At, Text: value})
			case "EXTEND_TIMEOUT_USEC":
				var usec int64
				fmt.Sscan(value, &usec)
				if i := len(n.holds) - 1; i >= 0 && n.holds[i].to.After(h.At) {
					n.holds[i].to = h.At
				}
				if usec > 0 {
					n.holds = append(n.holds, hold{from: h.At, to: h.At.Add(time.Duration(usec) * time.Microsecond)})
				}
			}
		}
	}
	return n
}

// rare judges a datagram beyond those of a second: it may be of another process than the flood.
func rare(late map[string]time.Time, h Heard) (rare bool) {
	for line := range strings.SplitSeq(h.Text, "\n") {
		switch key, _, _ := strings.Cut(line, "="); key {
		case "WATCHDOG", "READY", "STOPPING", "STATUS", "EXTEND_TIMEOUT_USEC":
			if h.At.Sub(late[key]) >= 10*time.Millisecond {
				late[key], rare = h.At, true
			}
		}
	}
	return rare
}

// SPEC 18.2: what the command says of itself is in the result, and the newest status in the snapshot. States can be waited for. A
// flood is counted and read slowly, and nothing is left in the socket.
func notices(s *seen) {
	if s.res == nil {
		return
	}
	want := s.notified()
	if s.res.Notices != want.said {
		s.bad("the notices are %+v, want %+v", s.res.Notices, want.said)
	}
	for state, said := range map[<-chan struct{}]bool{s.process.Ready(): want.said.Ready, s.process.Stopping(): want.said.Stopping} {
		select {
		case <-state:
			if !said {
				s.bad("a state can be seen that the command has not told")
			}
		default:
			if said {
				s.bad("a state cannot be seen that the command has told")
			}
		}
	}
	if want.burst > 64 {
		s.bad("%d datagrams of a flood were read at one instant", want.burst)
	}
	if n := len(s.m.Heard); !s.Notify && n > 0 || s.m.Said-n > 0 && n < 1000 && len(s.m.Alive()) == 0 {
		s.bad("%d datagrams were read, and %d were not", n, s.m.Said-n)
	}
	var stop *timeout.Error
	if len(s.snaps) != 1 || errors.As(s.err, &stop) && !stop.Timeout() {
		return
	}
	at := s.begun.Add(s.snaps[0].Elapsed)
	var newest any
	for _, h := range want.statuses {
		if h.At.Equal(at) {
			return // which of the two was first is not known
		}
		if h.At.Before(at) {
			newest = h.Text
		}
	}
	if got := s.snaps[0].Detail; got != newest && s.Notify && s.Stdin.How == absent {
		s.bad("the newest detail is %v, want %v", got, newest)
	}
}
