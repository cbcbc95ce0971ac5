package proctree

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Some files below /proc have to wait for their process. Its environment and its arguments are in
// its memory, which nobody reads while it changes its map; what it waits in, and its bytes, are
// not shown during an exec. Either takes it microseconds of processor time. But one of low priority
// may need seconds for these on a busy machine (measured: 5 s for the environment, 10 s for the
// arguments), and it may be anybody's, for the members are looked for among all.
//
// Such a read cannot be interrupted. So they are made by workers, which keep their thread where they
// block, and are waited for only so long. As long as one blocks there is no second one of the
// same file: who wants that too waits for the first.
const (
	// glance is after how long without a read that has returned another worker takes the next one,
	// and for how long those that have not returned are waited for when all have begun, while there
	// is something to kill.
	glance = time.Millisecond
	// lateTime is for how long otherwise. Five looks with it are less than what killing may take.
	lateTime = 100 * time.Millisecond
	// maxWorkers bounds those of one look, and maxAsked the reads under way in all: as many threads.
	maxWorkers, maxAsked = 32, 64
)

// gather calls read for 0 to n-1, by as many workers as it takes, and returns what it has
// returned, and for which it has done so before those that are late were given up. read may
// go on after that, and must have what it uses for itself.
func gather[T any](n int, late time.Duration, read func(r *procReader, i int) T) (values []T, returned []bool) {
	values, returned = make([]T, n), make([]bool, n)
	if n == 0 {
		return values, returned
	}
	type slot struct {
		value T
		done  atomic.Bool
	}
	slots, all := make([]slot, n), make(chan struct{})
	var begun, done atomic.Int64
	work := func() {
		var r procReader
		for {
			i := int(begun.Add(1)) - 1
			if i >= n {
				return
			}
			slots[i].value = read(&r, i)
			slots[i].done.Store(true)
			if int(done.Add(1)) == n {
				close(all)
			}
		}
	}
	go work()
	tick := time.NewTimer(glance)
	defer tick.Stop()
	workers, before := 1, int64(0)
	var waited time.Duration
	for last, over := time.Now(), false; !over; tick.Reset(glance) {
		select {
		case <-all:
			over = true
			continue
		case <-tick.C:
		}
		now, count := time.Now(), done.Load()
		// Where this process is what gets no time, that says nothing of the others.
		waited += min(now.Sub(last), 5*glance)
		switch {
		case count > before:
			waited = 0
		case int(begun.Load()) < n && workers < maxWorkers:
			workers++
			go work()
			waited = 0
		case waited >= late:
			begun.Store(int64(n)) // no worker begins another
			over = true
		}
		last, before = now, count
	}
	for i := range slots {
		if slots[i].done.Load() {
			values[i], returned[i] = slots[i].value, true
		}
	}
	return values, returned
}

type readID struct {
	procKey
	name string
}

// An asked is a read under way.
type asked struct {
	done    chan struct{} // closed when it has returned
	cookies string        // what it has found then, if it was an environment
}

var reads struct {
	sync.Mutex
	under map[readID]*asked
}

// ask calls read for a file that may have to wait for its process, unless another one is under way,
// which it returns then; where there are too many, it returns one that never ends. Call it
// under gather.
func ask(p *proc, name string, read func() (cookies string)) (other *asked) {
	id := readID{p.key(), name}
	reads.Lock()
	a := reads.under[id]
	switch {
	case a != nil:
		reads.Unlock()
		return a
	case len(reads.under) >= maxAsked:
		reads.Unlock()
		return new(asked)
	case reads.under == nil:
		reads.under = make(map[readID]*asked)
	}
	a = &asked{done: make(chan struct{})}
	reads.under[id] = a
	reads.Unlock()
	defer func() {
		reads.Lock()
		delete(reads.under, id)
		reads.Unlock()
		close(a.done)
	}()
	a.cookies = read()
	return nil
}

var errLate = errors.New("another one waits for it already")

// askFile is ask for the beginning of a file, with errLate where another one is under way.
func (r *procReader) askFile(p *proc, name string, buf []byte) (text []byte, err error) {
	other := ask(p, name, func() string {
		text, err = r.read(p.pid, name, buf, false)
		return ""
	})
	if other != nil {
		return nil, errLate
	}
	return text, err
}
