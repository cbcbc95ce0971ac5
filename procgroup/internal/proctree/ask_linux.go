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
// block, and are waited for only so long.
const (
	// glance is after how long without a read that has returned another worker takes the next one,
	glance = time.Millisecond
	// and lateTime for how long those that have not returned are waited for when all have begun.
	// Five looks with it are less than what killing may take.
	lateTime = 100 * time.Millisecond
	// maxWorkers bounds those of one look, and maxAsked the reads under way in all: as many threads.
	maxWorkers, maxAsked = 16, 64
)

// gather returns what read returns for 0 to n-1, in no order, and for which of them it has
// returned before those that are late were given up, after late.
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
	var until time.Time
wait:
	for {
		select {
		case <-all:
			break wait
		case <-tick.C:
		}
		now := done.Load()
		switch {
		case int(begun.Load()) >= n:
			if until.IsZero() {
				until = time.Now().Add(late)
			} else if !time.Now().Before(until) {
				break wait
			}
		case now > before:
		case workers < maxWorkers:
			workers++
			go work()
		default:
			begun.Store(int64(n)) // no more of this
		}
		before = now
		tick.Reset(glance)
	}
	for i := range slots {
		if slots[i].done.Load() {
			values[i], returned[i] = slots[i].value, true
		}
	}
	return values, returned
}

var errLate = errors.New("others wait for the process to show it already")

type readID struct {
	procKey
	name string
}

// asked has the reads under way. There is no second one of the same file, which would block as well.
var asked struct {
	sync.Mutex
	reads map[readID]bool
}

// ask is read for a file that may have to wait for its process. Call it under gather.
func (r *procReader) ask(p *proc, name string, buf []byte, all bool) ([]byte, error) {
	id, deadline := readID{p.key(), name}, time.Now().Add(lateTime)
	for b := backoff(0); !begin(id); {
		if !b.sleep(deadline) {
			return nil, errLate
		}
	}
	defer end(id)
	return r.read(p.pid, name, buf, all)
}

func begin(id readID) bool {
	asked.Lock()
	defer asked.Unlock()
	if asked.reads[id] || len(asked.reads) >= maxAsked {
		return false
	}
	if asked.reads == nil {
		asked.reads = make(map[readID]bool)
	}
	asked.reads[id] = true
	return true
}

func end(id readID) {
	asked.Lock()
	defer asked.Unlock()
	delete(asked.reads, id)
}
