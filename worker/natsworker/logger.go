package natsworker

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// logWait is the longest time that a message waits for a log record. maxLogging is the number of records being
// written at which further records are dropped.
const (
	logWait    = time.Second
	maxLogging = 16
)

// A logger writes to the caller's logger. It writes each record on a separate goroutine, because the caller's handler
// may block, panic or end its goroutine.
type logger struct {
	to      *slog.Logger
	writing atomic.Int32
}

// write calls record with the caller's logger, and waits for it up to logWait.
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
