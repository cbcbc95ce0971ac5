package timeout

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// This file finds the stack of one goroutine out of all of them. The runtime offers
// no way to ask for a single one, and to note the goroutine's number when it starts
// would cost every run a microsecond for the sake of the few that get stuck. So all
// stacks are taken, which stops the world, and the wanted one is found by the address
// of its execution, which the trace shows as the argument of execution.main.

const (
	// maxStack is how much of a trace goes into one error.
	maxStack = 64 << 10
	// maxGoroutines is where a capture becomes a stall that other limits notice. Beyond
	// it, errors come without a stack.
	maxGoroutines = 10_000
	// fewGoroutines are too few to ask what a capture costs.
	fewGoroutines = 200
	// maxEach is the most that is believed of what a capture takes per goroutine. One on a
	// machine that stood still meanwhile would otherwise be the last: the next is not
	// affordable, and nothing else says that things have changed.
	maxEach = 20 * time.Microsecond
	// maxTraces bounds the memory of a capture.
	maxTraces = 128 << 20
	// A capture before a cancellation delays it, and one after the grace delays Run's
	// return: what is expected to take longer than this is not done.
	budgetBeforeCancel = 5 * time.Millisecond
	budgetAfterGrace   = 25 * time.Millisecond
	// capturePrice times its length is how long a capture has to be paid for: 1 % of the
	// time may be spent on them. captureCredit is 5 ms of captures in advance, so that in
	// a process of ordinary size, where one takes some 100 µs, a few can follow on one
	// another.
	capturePrice  = 100
	captureCredit = capturePrice * 5 * time.Millisecond
)

// captures makes limits that fire together share one capture: who finds one under way
// waits for it to end, and then either takes the next, which all others that wait will
// share, or shares that of whoever was quicker. And it keeps the world running when
// many limits fire one after the other: captures are rationed, and who comes meanwhile
// has to make do with the last one.
//
// A channel in a global could not be used here: it would tie testing/synctest bubbles
// together.
var captures struct {
	begun  atomic.Uint64 // how many captures have begun
	wanted atomic.Int64  // how many are waiting for one

	mu     sync.Mutex
	last   *traces // while somebody waits
	recent weak.Pointer[traces]
	at     time.Time     // of the last one
	paid   time.Time     // until when the captures so far are paid for
	each   time.Duration // what one took per goroutine, 0 if that is not known
	text   int           // how much text there was per goroutine
}

// stack gives the stack of the function's goroutine, with those of the goroutines it
// has started, nil where it cannot be had within the budget.
func (e *execution) stack(budget time.Duration) []byte {
	c := &captures
	c.wanted.Add(1)
	before := c.begun.Load()
	c.mu.Lock()
	fresh := c.begun.Load() != before
	if !fresh && affordable(budget) {
		fresh = true
		capture()
	}
	if c.last == nil {
		c.last = c.recent.Value()
	}
	all := c.last
	if c.wanted.Add(-1) == 0 {
		c.last = nil
	}
	c.mu.Unlock()

	// An older capture may show where the function was before its last beat, or, with a
	// clock of one's own, nobody knows when.
	if all == nil || (!fresh && (e.cell.Clock() != nil || all.begun.Before(e.cell.LastTime()))) {
		return nil
	}
	return all.find(e)
}

// affordable reports whether a capture may be taken now. The lock is held, as in
// capture.
func affordable(budget time.Duration) bool {
	c := &captures
	now := time.Now()
	if now.Before(c.at) || c.paid.Before(now) {
		c.paid = now // the former: the last one was taken in another bubble's time
	}
	n := runtime.NumGoroutine()
	each := c.each
	if each == 0 {
		each = 2 * time.Microsecond
	}
	cheap := n < fewGoroutines || (n <= maxGoroutines && time.Duration(n)*each <= budget)
	return cheap && c.paid.Sub(now) < captureCredit
}

func capture() {
	c := &captures
	c.begun.Add(1)
	n := runtime.NumGoroutine()
	began := time.Now()
	size := 64<<10 + n*max(c.text+c.text/4, 1<<10)
	var t *traces
	for t == nil {
		buf := make([]byte, min(size, maxTraces))
		used := runtime.Stack(buf, true)
		if used < len(buf) || len(buf) == maxTraces {
			t = index(buf[:used])
			c.text = used / n
		}
		size *= 2 // each try stops the world, so the first should do
	}
	t.begun = began
	c.last, c.recent = t, weak.Make(t)
	took := time.Since(began)
	if n >= fewGoroutines && took > 0 { // enough to tell; a bubble's time stands still
		c.each = min(took/time.Duration(n), maxEach)
	}
	c.at = began
	c.paid = c.paid.Add(capturePrice * took)
}

// traces is the text of all goroutines, and where each of them is in it.
type traces struct {
	begun    time.Time
	main     map[string][]byte   // the trace by the address of the execution
	children map[string][][]byte // the traces by the number of the goroutine that started them
}

var (
	mainFrame = []byte("/timeout.(*execution).main(")
	createdBy = []byte("\ncreated by ")
	inRoutine = []byte(" in goroutine ")
)

func index(text []byte) *traces {
	t := &traces{main: make(map[string][]byte), children: make(map[string][][]byte)}
	for trace := range bytes.SplitSeq(text, []byte("\n\n")) {
		if i := bytes.Index(trace, mainFrame); i >= 0 {
			arg, _, _ := bytes.Cut(trace[i+len(mainFrame):], []byte(")"))
			t.main[string(bytes.TrimRight(arg, "?"))] = trace
		}
		if i := bytes.Index(trace, createdBy); i >= 0 {
			line, _, _ := bytes.Cut(trace[i+len(createdBy):], []byte("\n"))
			if j := bytes.LastIndex(line, inRoutine); j >= 0 {
				parent := string(line[j+len(inRoutine):])
				t.children[parent] = append(t.children[parent], trace)
			}
		}
	}
	return t
}

// find gives the trace of e's function and, after it, those of the goroutines that it
// started, and so on, up to maxStack.
func (t *traces) find(e *execution) []byte {
	trace := t.main[fmt.Sprintf("%p", e)]
	if trace == nil {
		return nil
	}
	out := bytes.Clone(trace)
	for queue := [][]byte{trace}; len(queue) > 0; queue = queue[1:] {
		for _, child := range t.children[goroutineNumber(queue[0])] {
			if len(out)+len(child)+2 > maxStack {
				return out[:min(len(out), maxStack)]
			}
			out = append(append(out, "\n\n"...), child...)
			queue = append(queue, child)
		}
	}
	return out[:min(len(out), maxStack)]
}

// goroutineNumber reads "goroutine 7 [select]:".
func goroutineNumber(trace []byte) string {
	rest, _ := bytes.CutPrefix(trace, []byte("goroutine "))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	if _, err := strconv.Atoi(string(number)); err != nil {
		return ""
	}
	return string(number)
}
