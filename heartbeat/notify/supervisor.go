package notify

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// ErrNoSupervisor is the error of [Send] in a program that has none: NOTIFY_SOCKET is not set.
var ErrNoSupervisor = errors.New("notify: there is no supervisor: NOTIFY_SOCKET is not set")

// Send sends states such as "READY=1" or "STATUS=loading" to the supervisor, in one datagram; a state is one line. It waits for
// a supervisor that does not read, for at most a tenth of a second. It may be called by any number of goroutines.
func Send(states ...string) error {
	addr := os.Getenv("NOTIFY_SOCKET")
	if addr == "" {
		return ErrNoSupervisor
	}
	return send(addr, strings.Join(states, "\n"))
}

// A supervisor is the process that expects messages from this one.
type supervisor struct {
	addr   string
	within time.Duration // the time within which it expects a message; 0 if it does not say
}

// theSupervisor returns the supervisor of this process, or false if there is none. A supervisor that waits for another
// process, see sd_watchdog_enabled(3), does not count.
func theSupervisor() (s supervisor, ok bool) {
	s.addr = os.Getenv("NOTIFY_SOCKET")
	if pid, set := os.LookupEnv("WATCHDOG_PID"); s.addr == "" || set && pid != strconv.Itoa(os.Getpid()) {
		return s, false
	}
	if usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		s.within = time.Duration(min(usec, 1<<62/1000)) * time.Microsecond
	}
	return s, true
}

// say sends m. There is nobody to tell of an error: a supervisor that is gone needs nothing.
func (s supervisor) say(m sdnotify.Message) { _ = send(s.addr, m.String()) }

// send is replaced by tests in simulated time.
var send = sdnotify.Send
