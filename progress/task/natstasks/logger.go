package natstasks

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// logWait is the longest time that a log record delays the renewal of the lease, whose shortest interval is 333 ms.
// maxLogging is the number of records being written at which further records are dropped.
const (
	logWait    = 50 * time.Millisecond
	maxLogging = 16
)

// A logger writes each record to the logger of the caller on a separate goroutine, because the caller's handler may
// block, panic, or end its goroutine.
type logger struct {
	to      *slog.Logger
	writing atomic.Int32
}

func (l *logger) write(record func(*slog.Logger)) {
	if l.writing.Add(1) > maxLogging {
		l.writing.Add(-1)
		return
	}
	written := make(chan struct{})
	go func() {
		defer func() {
			_ = recover()
			l.writing.Add(-1)
			close(written)
		}()
		record(l.to)
	}()
	select {
	case <-written:
	case <-time.After(logWait):
	}
}
