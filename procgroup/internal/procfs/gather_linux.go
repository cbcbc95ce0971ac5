package procfs

import (
	"sync/atomic"
	"time"
)

// Some files wait for their process: its environment and its arguments are in its memory, which nobody reads
// while the process changes its map, and its stack and its bytes are not shown during an exec. It takes the
// process microseconds of processor time, but one of low priority may get these only after seconds on a busy
// machine (measured: 5 s for the environment, 10 s for the arguments).
//
// Such a read cannot be interrupted. So each runs on a goroutine that is left behind when it is late. There is
// never more than one read of the same file under way, so that what is slow again and again costs one thread.

const (
	// glance is how often Gather looks whether a read has returned.
	glance = time.Millisecond
	// minGlances is how many of these Gather allows at least before it gives up: on a busy machine, or in a
	// host that is given a part of a core, reads and glances get no processor for as long, and a single glance
	// after a long time says nothing about the reads.
	minGlances = 10
	// maxWorkers bounds the reads of one Gather that are under way, and maxSlow those of all: as many threads.
	maxWorkers, maxSlow = 32, 64
)

// A Patience bounds how long one look, which may take several calls of Gather, waits for slow reads. It is for
// one goroutine.
type Patience struct{ whole, left time.Duration }

// NewPatience returns a Patience of d. Time in which no read returns counts, and a third of the time in which
// all workers have met slow reads and some return.
func NewPatience(d time.Duration) *Patience { return &Patience{d, d} }

// spend takes off time in which no read has returned, and reports whether some is left.
func (p *Patience) spend(d time.Duration) bool {
	p.left -= min(d, p.whole/minGlances)
	return p.left > 0
}

// Gather calls read for 0 to n-1. It returns what read has returned, and for which it has done so before the
// patience was over. Calls of read that are late go on, and what they return is lost: so they must not use
// anything that the caller changes. While a call takes longer than a glance, others go on beside it.
func Gather[T any](patience *Patience, n int, read func(r *Reader, i int) T) (values []T, returned []bool) {
	type answer struct {
		i     int
		value T
	}
	values, returned = make([]T, n), make([]bool, n)
	answers, over := make(chan answer, n), make(chan struct{})
	defer close(over)
	var begun atomic.Int64
	work := func() {
		r := &Reader{over: over}
		for i := int(begun.Add(1)) - 1; i < n; i = int(begun.Add(1)) - 1 {
			answers <- answer{i, read(r, i)}
		}
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	last, progress, workers := time.Now(), false, 0
	for left := n; left > 0; {
		if workers == 0 {
			workers++
			go work()
		}
		select {
		case a := <-answers:
			values[a.i], returned[a.i] = a.value, true
			progress = true
			left--
			continue
		case <-tick.C:
		}
		now := time.Now()
		passed, more := now.Sub(last), int(begun.Load()) < n
		switch {
		case progress && (workers < maxWorkers || !more):
			passed = 0
		case progress: // so many were slow that the rest may be: it must not take for ever, either
			passed /= 3
		case more && workers < maxWorkers:
			passed = 0
			workers++
			go work()
		}
		if passed > 0 && !patience.spend(passed) {
			begun.Store(int64(n)) // no worker begins another one
			return values, returned
		}
		last, progress = now, false
	}
	return values, returned
}
