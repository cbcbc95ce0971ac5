package procfs

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// glance is the interval at which Gather checks whether reads have returned.
	glance = time.Millisecond
	// minGlances is the least number of checks before Gather gives up. On a busy machine, or in a host limited to a
	// part of a core, Gather itself may get no processor for as long as the reads, so that one check after a long
	// time says nothing about the reads.
	minGlances = 10
	// maxWorkers bounds the concurrent reads of one Gather, each of which may occupy a thread.
	maxWorkers = 32
)

// A Patience bounds the time that one look at the processes waits for slow reads, in one or more calls of Gather. A
// Patience is for one goroutine at a time.
type Patience struct {
	whole, left time.Duration
	account     *Account
}

// An Account counts the reads that were abandoned and have not returned.
type Account struct{ late atomic.Int64 }

// Late returns the number of reads that were abandoned and have not returned.
func (a *Account) Late() int { return int(a.late.Load()) }

// NewPatience returns a Patience of d. Time in which no read returns counts in full, unless Gather can still begin
// another read. Time in which reads return counts only if maxWorkers reads are slow and more are to come: for a third.
func NewPatience(d time.Duration) *Patience {
	return &Patience{whole: d, left: d, account: new(Account)}
}

// On makes a count the reads that are abandoned, and returns p.
func (p *Patience) On(a *Account) *Patience {
	p.account = a
	return p
}

// spend subtracts d, but at most one part in minGlances of the whole, and reports whether any patience is left.
func (p *Patience) spend(d time.Duration) bool {
	p.left -= min(d, p.whole/minGlances)
	return p.left > 0
}

// Gather calls read with each i from 0 to n-1, and returns the values. returned[i] reports whether the call for i has
// returned before the patience was over. The calls run on other goroutines, one after the other; while none returns
// for the time of a glance, Gather begins more of them concurrently. Late calls continue after Gather has returned, and
// their values are lost, so read must not use anything that the caller changes.
func Gather[T any](patience *Patience, n int, read func(r *Reader, i int) T) (values []T, returned []bool) {
	type answer struct {
		i     int
		value T
	}
	values, returned = make([]T, n), make([]bool, n)
	answers, over := make(chan answer, n), make(chan struct{})
	defer close(over)
	var begun atomic.Int64
	settled := make([]atomic.Bool, n) // set for the calls that have returned or were abandoned, whichever came first
	account := patience.account
	work := func() {
		r := &Reader{over: over}
		for i := int(begun.Add(1)) - 1; i < n; i = int(begun.Add(1)) - 1 {
			value := read(r, i)
			if settled[i].Swap(true) {
				account.late.Add(-1)
			}
			answers <- answer{i, value}
		}
	}
	left, progress := n, false
	take := func(a answer) {
		values[a.i], returned[a.i] = a.value, true
		progress = true
		left--
	}
	if n > 0 {
		go work()
		// After this yield most reads have returned, and need no ticker, which would wake the runtime's polling thread
		// each millisecond.
		runtime.Gosched()
	}
	takeAll := func() {
		for len(answers) > 0 {
			take(<-answers)
		}
	}
	if takeAll(); left == 0 {
		return values, returned
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	last, workers := time.Now(), 1
	for left > 0 {
		select {
		case a := <-answers:
			take(a)
			continue
		case <-tick.C:
			takeAll() // on a busy machine both are ready, and what has returned is not late
		}
		now := time.Now()
		passed, more := now.Sub(last), int(begun.Load()) < n
		switch {
		case progress && (workers < maxWorkers || !more):
			passed = 0
		case progress: // maxWorkers reads were slow, so the others may be slow too
			passed /= 3
		case more && workers < maxWorkers:
			passed = 0
			workers++
			go work()
		}
		if passed > 0 && !patience.spend(passed) {
			last := min(int(begun.Swap(int64(n))), n) // no worker begins another call
			for i := range last {
				if returned[i] {
					continue
				}
				account.late.Add(1)
				if settled[i].Swap(true) { // the call has returned just now
					account.late.Add(-1)
				}
			}
			return values, returned
		}
		last, progress = now, false
	}
	return values, returned
}

// Ask is like Gather, for a single call of read. In it, read may call several methods of r, one after the other.
func Ask[T any](patience *Patience, read func(r *Reader) T) (value T, returned bool) {
	values, all := Gather(patience, 1, func(r *Reader, _ int) T { return read(r) })
	return values[0], all[0]
}

// Unhurried returns a Reader whose methods nothing bounds: they may block for ever. It is for a goroutine that nobody
// waits for.
func Unhurried() *Reader { return new(Reader) }
