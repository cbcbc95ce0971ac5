package stacks

import (
	"runtime"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

const (
	// A sample is paid for with price times its duration: until that time has passed, the next
	// sample is on credit. The credit allows a few samples in a row in a process of ordinary size,
	// where one takes some 100 µs.
	price  = 100
	credit = price * 5 * time.Millisecond
	// mostPaid is the longest time for which one sample has to be paid. A sample that was taken
	// while the machine stood still must not prevent others for hours.
	mostPaid = price * 250 * time.Millisecond

	// costGuess is what a sample may cost for each goroutine: 4 to 12 µs were measured. It serves until one
	// was taken, and as the least.
	costGuess = 4 * time.Microsecond

	// mostQuiet is the longest time in which no sample is taken because others ask all the time. Limits that go on
	// firing, as where what all tools use has failed, would otherwise have no stacks for as long as they do.
	mostQuiet = 5 * time.Second

	// Sizes of text: the first guess per goroutine, and the bounds for all goroutines.
	textGuess = 1 << 10
	textLeast = 64 << 10
	textMost  = 128 << 20
)

// A Sampler takes samples. Only Frame must be set. A Sampler is safe for concurrent use, and its
// fields must not be changed after its first use.
//
// It does not predict how long a sample will take. That depends on the depth of the stacks and the
// load of the machine, and a prediction that was once too high would prevent the sample that
// corrects it. A bound on the number of goroutines is coarse but always correct.
type Sampler struct {
	// Frame identifies the goroutines to be found: their traces contain it, up to the bracket
	// before the argument that distinguishes them.
	Frame string

	// Quiet is for how many times its own duration nobody may have asked before a sample is taken. Where
	// callers come more often, as where thousands of limits fall due one after the other, each sample would
	// make those late that fall due meanwhile. They get the last one. After 5 s of that a sample is taken all the same. 0
	// means that it does not matter.
	Quiet int

	// The functions to use; nil means time.Now, runtime.NumGoroutine and runtime.Stack.
	Now        func() time.Time
	Goroutines func() int
	Dump       func(buf []byte) int

	shared coalesce.Call[*Sample]

	recent   atomic.Pointer[weak.Pointer[Sample]]
	lastTake atomic.Int64 // when Take was called last, in Unix nanoseconds
	each     atomic.Int64 // what the last sample cost for each goroutine, in nanoseconds
	lastCalm atomic.Int64 // when a sample was taken last, or Take called with nobody before it, in Unix nanoseconds

	// The fields below belong to the caller that has the turn in shared.
	looked time.Time // time of the last call of Take
	paid   time.Time // instant until which the samples so far are paid for
	text   int       // bytes per goroutine in the last sample
}

// Take returns a sample that began after the call, and true. If there are more than most
// goroutines, others have just asked, or the budget is spent, it returns the last sample, or nil, and
// false.
func (s *Sampler) Take(most int) (sample *Sample, fresh bool) {
	n := s.goroutines()
	crowded := s.Quiet > 0 && s.crowded(n)
	if n > most {
		// Without a turn: where a hundred thousand limits fire at once, they would come to
		// their nil one after the other, each after a switch of goroutines.
		return s.last(s.now()), false
	}
	return s.shared.Do(func() (*Sample, bool) {
		now := s.now()
		if crowded { // the sample that was being taken meanwhile is the last one now
			return s.last(now), false
		}
		if now.Before(s.looked) { // the time is that of another synctest bubble
			s.paid = now
			s.recent.Store(nil)
		}
		s.looked = now
		if s.paid.Before(now) {
			s.paid = now
		}
		n := s.goroutines()
		if n > most || s.paid.Sub(now) >= credit {
			return s.last(now), false
		}
		sample := index(s.dump(n), s.Frame)
		sample.Begun = now
		s.lastCalm.Store(now.UnixNano())
		recent := weak.Make(sample)
		s.recent.Store(&recent)
		took := s.now().Sub(now)
		s.each.Store(int64(took) / int64(max(n, 1)))
		s.paid = s.paid.Add(min(price*took, mostPaid))
		return sample, true
	})
}

// crowded reports whether somebody has asked so shortly before now that a sample of n goroutines would
// make others late, and that not for too long yet. An instant that is not after the last one is that of another bubble, or
// the same.
func (s *Sampler) crowded(n int) bool {
	now := s.now().UnixNano()
	ago := now - s.lastTake.Swap(now)
	cost := max(s.each.Load(), int64(costGuess)) * int64(n)
	if ago <= 0 || ago >= int64(s.Quiet)*cost {
		s.lastCalm.Store(now)
		return false
	}
	return now-s.lastCalm.Load() < int64(mostQuiet)
}

// last returns the last sample if it is still in memory, and none of another synctest bubble
// whose time is ahead of ours.
func (s *Sampler) last(now time.Time) *Sample {
	recent := s.recent.Load()
	if recent == nil {
		return nil
	}
	if sample := recent.Value(); sample != nil && !sample.Begun.After(now) {
		return sample
	}
	return nil
}

// dump returns the traces of n goroutines, or as much of them as textMost holds.
func (s *Sampler) dump(n int) []byte {
	// Each attempt stops the world, so the first should be large enough.
	each := textGuess
	if s.text > 0 {
		each = s.text + s.text/4
	}
	for size := textLeast + n*each; ; size *= 2 {
		buf := make([]byte, min(size, textMost))
		var used int
		if s.Dump != nil {
			used = s.Dump(buf)
		} else {
			used = runtime.Stack(buf, true)
		}
		if used < len(buf) || len(buf) == textMost {
			s.text = used / max(n, 1)
			return buf[:used]
		}
	}
}

func (s *Sampler) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Sampler) goroutines() int {
	if s.Goroutines != nil {
		return s.Goroutines()
	}
	return runtime.NumGoroutine()
}
