package proctree

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Some files below /proc have to wait for their process. Its environment and its arguments are in
// its memory, which nobody reads while it changes its map; what it waits in, and its bytes, are
// not shown during an exec. Either takes it microseconds of processor time. But one of low priority
// may need seconds for these on a busy machine (measured: 5 s for the environment, 10 s for the
// arguments), and it may be anybody's, for the members are looked for among all.
//
// Such a read cannot be interrupted. So they are made by workers, and are waited for only so
// long. As long as one blocks there is no second one of the same file: who wants that too waits
// for the first.
const (
	// glance is for how long reads may block before another worker takes the next ones, and before
	// they are given up when there is no other worker, while there is something to kill.
	glance = time.Millisecond
	// lateTime is the same when nothing has to be killed.
	lateTime = 100 * time.Millisecond
	// viewLate is the same for a view of the tree, which stands between a limit and the signal.
	viewLate = 30 * time.Millisecond
	// maxLate is for how long reads may block in all in one look, and hardLate is how long a look may
	// take in which one has blocked: as multiples of the above.
	maxLate, hardLate = 2, 3
	// maxStill is for how long nothing may return, whatever it waits for.
	maxStill = time.Second
	// maxWorkers bounds those of one look, and maxAsked the reads under way in all: as many threads.
	maxWorkers, maxAsked = 32, 64
)

// A thread is the id of a thread that reads a file that may have to wait for its process: 0 where
// there is none, and stuck for a read that never ends.
type thread = atomic.Int32

const stuck = -1

// A waiting says when what a look reads is to be given up. Only time in which a read blocks counts:
// on a busy machine a thread waits for a processor for as long, and comes back.
type waiting struct {
	late        time.Duration
	r           procReader
	begun, last time.Time
	still       time.Duration // since something has returned
	blocked     time.Duration // since something has returned, or a worker was added
	total       time.Duration // blocked, since it has begun
}

func newWaiting(late time.Duration) *waiting {
	now := time.Now()
	return &waiting{late: late, begun: now, last: now}
}

// sample is called every glance. It returns for how long reads have blocked while nothing has
// returned.
func (w *waiting) sample(progress bool, threads ...*thread) (blocked time.Duration) {
	now := time.Now()
	passed := now.Sub(w.last)
	w.last = now
	if progress {
		w.still, w.blocked = 0, 0
		return 0
	}
	w.still += min(passed, 50*glance) // where this process was stopped, its reads were too
	if slices.ContainsFunc(threads, w.blocks) {
		return min(passed, 5*glance) // a late sample says nothing of the reads
	}
	return 0
}

// over adds what sample has returned, and reports whether to give up.
func (w *waiting) over(blocked time.Duration) bool {
	w.blocked += blocked
	w.total += blocked
	return w.blocked >= w.late || w.total >= maxLate*w.late || w.still >= maxStill ||
		w.total > 0 && w.last.Sub(w.begun) >= hardLate*w.late
}

// blocks reports whether a thread is in an uninterruptible sleep, or cannot be looked at, for want of
// a descriptor, say.
func (w *waiting) blocks(t *thread) bool {
	id := t.Load()
	if id <= 0 {
		return id == stuck
	}
	var buf [1 << 10]byte
	text, err := w.r.read(os.Getpid(), "/task/"+strconv.Itoa(int(id))+"/stat", buf[:], false)
	if err != nil {
		return true
	}
	p, _, ok := parseStat(text)
	return !ok || p.state == 'D'
}

// await waits for a read of somebody else's, and reports whether it has returned.
func (w *waiting) await(a *asked) bool {
	tick := time.NewTimer(glance)
	defer tick.Stop()
	for over := w.over(0); ; {
		select {
		case <-a.done:
			w.still, w.blocked = 0, 0
			return true
		default:
		}
		if over {
			return false
		}
		select {
		case <-a.done:
		case <-tick.C:
			over = w.over(w.sample(false, &a.thread))
			tick.Reset(glance)
		}
	}
}

// gather calls read for 0 to n-1, by as many workers as it takes, and returns what it has
// returned, and for which it has done so before those that are late were given up. read may
// go on after that, and must have what it uses for itself.
func gather[T any](w *waiting, n int, read func(r *procReader, i int) T) (values []T, returned []bool) {
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
	var threads []*thread
	work := func() {
		r := &procReader{late: w.late, thread: new(thread)}
		threads = append(threads, r.thread)
		go func() {
			for {
				i := int(begun.Add(1)) - 1
				if i >= n {
					return
				}
				slots[i].value = read(r, i)
				slots[i].done.Store(true)
				if int(done.Add(1)) == n {
					close(all)
				}
			}
		}()
	}
	work()
	tick := time.NewTimer(glance)
	defer tick.Stop()
	before := int64(0)
	for over := false; !over; tick.Reset(glance) {
		select {
		case <-all:
			over = true
			continue
		case <-tick.C:
		}
		count := done.Load()
		blocked := w.sample(count > before, threads...)
		before = count
		if blocked > 0 && int(begun.Load()) < n && len(threads) < maxWorkers {
			work()
			w.blocked = 0
		} else if over = w.over(blocked); over {
			begun.Store(int64(n)) // no worker begins another
		}
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
	thread thread
	done   chan struct{} // closed when it has returned, which is this:
	p      proc
	text   []byte
	err    error
}

var reads struct {
	sync.Mutex
	under map[readID]*asked
}

// ask calls read for a file that may have to wait for its process, unless another one is under way,
// which it returns then; where there are too many, it returns one that never ends. Call it
// under gather.
func (r *procReader) ask(p *proc, name string, read func(a *asked)) (other *asked) {
	id := readID{p.key(), name}
	// The thread stays what it is while it can be looked at.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reads.Lock()
	a := reads.under[id]
	switch {
	case a != nil:
		reads.Unlock()
		return a
	case len(reads.under) >= maxAsked:
		reads.Unlock()
		a = new(asked)
		a.thread.Store(stuck)
		return a
	case reads.under == nil:
		reads.under = make(map[readID]*asked)
	}
	a = &asked{done: make(chan struct{})}
	tid := int32(unix.Gettid())
	a.thread.Store(tid)
	r.thread.Store(tid)
	reads.under[id] = a
	reads.Unlock()
	defer func() {
		r.thread.Store(0)
		reads.Lock()
		delete(reads.under, id)
		reads.Unlock()
		close(a.done)
	}()
	read(a)
	return nil
}

var errLate = errors.New("it has not come in time")

// askFile is ask for the beginning of a file. What another read that is under way returns will do:
// there is none of this look before it.
func (r *procReader) askFile(p *proc, name string, buf []byte) (text []byte, err error) {
	other := r.ask(p, name, func(a *asked) {
		text, err = r.read(p.pid, name, buf, false)
		a.text, a.err = slices.Clone(text), err
	})
	switch {
	case other == nil:
		return text, err
	case newWaiting(r.late).await(other):
		return other.text, other.err
	}
	return nil, errLate
}
