package alive

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// BusyRate is the rate of processor time, as a fraction of one core, from which on a server is busy. From the same rate
// on, procgroup.Activity counts processor time as work.
const BusyRate = 0.01

// A Load measures the rate of processor time of a server's processes. A measurement takes up to 5 ms, so all calls
// within a second share one.
type Load struct {
	mu    sync.Mutex
	at    time.Time     // time of the last measurement; zero if there was none
	spent time.Duration // result of Spent at that time
	rate  float64       // cores in use between the last two measurements
	known bool          // rate is valid: the two were less than 5 minutes apart
}

// Reset discards the measurements, because another run of the server begins.
func (l *Load) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.spent, l.rate, l.known = time.Time{}, 0, 0, false
}

// measure returns the rate of processor time since the last measurement, in cores, or, within a second of it, what that
// one returned. The bool is false if there was no measurement in the 5 minutes before, or o is nil.
func (l *Load) measure(o server.Observer) (float64, bool) {
	if o == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since := time.Since(l.at)
	if since < time.Second {
		return l.rate, l.known
	}
	spent := Spent(o)
	// The time of processes that have ended is missing, so the difference may be negative.
	l.rate, l.known = max(float64(spent-l.spent), 0)/float64(since), !l.at.IsZero() && since < 5*time.Minute
	l.at, l.spent = time.Now(), spent
	return l.rate, l.known
}

// Spent returns the processor time that the observed processes have used since they started.
func Spent(o server.Observer) (spent time.Duration) {
	for _, p := range o.Tree().Processes {
		spent += p.CPU
	}
	return spent
}
