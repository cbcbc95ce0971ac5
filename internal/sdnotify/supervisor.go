package sdnotify

import (
	"os"
	"strconv"
	"time"
)

// A Supervisor is the process that expects messages from this one.
type Supervisor struct {
	Addr   string
	Within time.Duration // the time within which it expects a message; 0 if it does not say
}

// TheSupervisor returns the supervisor of this process, or false if there is none. A supervisor that waits for another
// process, see sd_watchdog_enabled(3), does not count.
func TheSupervisor() (s Supervisor, ok bool) {
	s.Addr = os.Getenv("NOTIFY_SOCKET")
	if pid, set := os.LookupEnv("WATCHDOG_PID"); s.Addr == "" || set && pid != strconv.Itoa(os.Getpid()) {
		return s, false
	}
	if usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		s.Within = time.Duration(min(usec, 1<<62/1000)) * time.Microsecond
	}
	return s, true
}
