package sdnotify

import (
	"os"
	"strconv"
	"time"
)

// A Supervisor is the process that expects messages from this one.
type Supervisor struct {
	Addr   string        // the value of NOTIFY_SOCKET
	Within time.Duration // the longest time between two heartbeats, from WATCHDOG_USEC; 0 if there is no limit
}

// TheSupervisor returns the supervisor of this process. ok is false if there is none, or if it watches another process
// according to WATCHDOG_PID; see sd_watchdog_enabled(3).
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
