package alive

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// BusyRate is the use of processor time, as a fraction of one core, from which a server is busy: the
// rate from which procgroup.Activity counts it as work.
const BusyRate = 0.01

// A Load measures how much processor time the processes of a server use. A measurement takes up to
// 5 ms, so all calls that ask within a second share one.
type Load struct {
	mu    sync.Mutex
	at    time.Time
	spent time.Duration
	rate  float64 // cores in use since the previous measurement
	known bool
}

// Reset forgets what the processes of an earlier server have used.
func (l *Load) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.spent, l.rate, l.known = time.Time{}, 0, 0, false
}

// measure returns the rate since the last measurement. It reports false if there was none within the last
// 5 minutes.
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
	// The time of a process that has ended is missing, so the difference may be negative.
	l.rate, l.known = max(float64(spent-l.spent), 0)/float64(since), !l.at.IsZero() && since < 5*time.Minute
	l.at, l.spent = time.Now(), spent
	return l.rate, l.known
}

// Spent returns how much processor time the processes of a server have used.
func Spent(o server.Observer) (spent time.Duration) {
	for _, p := range o.Tree().Processes {
		spent += p.CPU
	}
	return spent
}
