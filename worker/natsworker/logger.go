package natsworker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// logWait bounds how long a message waits for a log record. maxLogging bounds the records that are stuck; further
// records are dropped.
const (
	logWait    = time.Second
	maxLogging = 16
)

// A logger writes to the caller's logger, which may block, panic or end its goroutine: each record has its own.
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

// deliveryHandler adds to a record which delivery it is about. WithAttrs of the caller's handler, called for each
// message, would do so too, and would have to be waited for.
type deliveryHandler struct {
	slog.Handler
	delivery *delivery
}

func (h deliveryHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Add(h.delivery.logAttrs()...)
	return h.Handler.Handle(ctx, r)
}
