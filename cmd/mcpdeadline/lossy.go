package main

import (
	"io"
	"time"
)

// A lossyWriter passes on to w and drops what comes while w is too slow: a host that does not read the
// log of a server must not stop the server.
type lossyWriter struct {
	c    chan []byte
	done chan struct{}
}

func newLossyWriter(w io.Writer) *lossyWriter {
	l := &lossyWriter{make(chan []byte, 256), make(chan struct{})}
	go func() {
		defer close(l.done)
		for p := range l.c {
			if p == nil {
				return
			}
			if _, err := w.Write(p); err != nil {
				return
			}
		}
	}()
	return l
}

func (l *lossyWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		select {
		case l.c <- append([]byte(nil), p...):
		default:
		}
	}
	return len(p), nil
}

// flush waits until everything has been written. Nothing is written afterwards.
func (l *lossyWriter) flush(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case l.c <- nil:
		select {
		case <-l.done:
		case <-timer.C:
		}
	case <-l.done:
	case <-timer.C:
	}
}
