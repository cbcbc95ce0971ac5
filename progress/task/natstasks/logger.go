package natstasks

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// logWait is how long a record may keep the lease waiting, which is renewed every 333 ms at least, and maxLogging how many records may be stuck: beyond
// that they are dropped.
const (
	logWait    = 50 * time.Millisecond
	maxLogging = 16
)

// A logger writes to the caller's, which may block, panic, or end its goroutine: each record has one of its own.
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
	wait := time.NewTimer(logWait)
	defer wait.Stop()
	select {
	case <-written:
	case <-wait.C:
	}
}
