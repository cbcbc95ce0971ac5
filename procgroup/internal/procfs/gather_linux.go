package procfs

import (
	"sync/atomic"
	"time"
)

// Reading some files has to wait for their process. The environment and the arguments of a process are in its
// memory, which cannot be read while the process changes its memory map; its stack and its I/O counters are not
// available during an exec. The process needs only microseconds of processor time to get past that, but a
// process of low priority may wait seconds for them on a busy machine (measured: 5 s for the environment, 10 s
// for the arguments).
//
// Such a read cannot be interrupted, so each runs on a goroutine that is abandoned when it is late. At most one
// read of the same file is in progress at a time, so a file that is always slow occupies one thread.

const (
	// glance is how often Gather looks whether a read has returned.
	glance = time.Millisecond
	// minGlances is the least number of glances before Gather gives up. On a busy machine, or in a host
	// limited to a part of a core, Gather itself may get no processor for as long as the reads do, so that
	// one glance after a long time says nothing about the reads.
	minGlances = 10
	// maxWorkers bounds the concurrent reads of one Gather, and maxSlow those of all Gathers. Each may occupy
	// a thread.
	maxWorkers, maxSlow = 32, 64
)

// A Patience bounds how long one look at the processes waits for slow reads. A look may call Gather several
// times. A Patience must not be used by several goroutines at once.
type Patience struct{ whole, left time.Duration }

// NewPatience returns a Patience of d. Time in which no read returns counts in full. Time in which all workers
// are at slow reads, but some reads return, counts for a third.
func NewPatience(d time.Duration) *Patience { return &Patience{d, d} }

// spend subtracts time in which no read has returned, and reports whether any patience is left.
func (p *Patience) spend(d time.Duration) bool {
	p.left -= min(d, p.whole/minGlances)
	return p.left > 0
}

// Gather calls read with each i from 0 to n-1, and returns the values. returned[i] reports whether the call for
// i has returned before the patience was over. Late calls continue, and their values are lost, so read must not
// use anything that the caller changes. If a call takes longer than a glance, the next ones run beside it.
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
