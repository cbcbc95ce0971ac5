package stacks

import (
	"runtime"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

const (
	// Each sample adds price times its duration to a debt, which time pays off. No sample is taken
	// while the debt is at least credit. The credit allows a few samples in a row in a process of
	// ordinary size, where a sample takes some 100 µs.
	price  = 100
	credit = price * 5 * time.Millisecond
	// mostPaid is the largest debt of one sample. A sample that took long because the machine was
	// suspended must not prevent others for hours.
	mostPaid = price * 250 * time.Millisecond

	// costGuess is the least duration of a sample to assume for each goroutine, and the one to assume before the first
	// sample. Measurements were between 4 and 12 µs.
	costGuess = 4 * time.Microsecond

	// mostQuiet is the longest time in which Sampler.Quiet prevents all samples. Without it, limits that fire one after
	// the other, because a service that all tools use has failed, would get no stacks at all.
	mostQuiet = 5 * time.Second

	// Sizes of text in bytes: the first guess per goroutine, and the bounds for all goroutines together.
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
	// Frame identifies the goroutines to be found: a text in their traces, such as "example.run(",
	// which ends with the bracket before the argument that distinguishes them.
	Frame string

	// Quiet prevents a sample if Take was called less than Quiet times the expected duration of the sample before.
	// Such calls come, for example, from thousands of limits that fall due one after the other, and each sample would
	// delay those that fall due meanwhile. They get the last sample. After 5 s without a sample one is taken all the
	// same. With 0 the time between calls makes no difference.
	Quiet int

	// Functions for tests. nil means time.Now, runtime.NumGoroutine and runtime.Stack for all goroutines.
	Now        func() time.Time
	Goroutines func() int
	Dump       func(buf []byte) int

	shared coalesce.Call[*Sample]

	recent   atomic.Pointer[weak.Pointer[Sample]]
	lastTake atomic.Int64 // time of the last call of Take, in Unix nanoseconds
	each     atomic.Int64 // duration of the last sample divided by the number of goroutines, in nanoseconds
	lastCalm atomic.Int64 // time of the last sample, or of the last Take that was not crowded, in Unix nanoseconds

	// The fields below are used only within a call of shared.Do.
	looked time.Time // time of the last Take that got there
	paid   time.Time // instant at which the debt of the samples so far is paid off
	text   int       // bytes per goroutine in the last sample
}

// Take returns a sample that began after the call, and true. If there are more than most goroutines, if Quiet prevents
// a sample, or if samples have taken too much time, it returns the last sample, or nil if that is gone, and false.
func (s *Sampler) Take(most int) (sample *Sample, fresh bool) {
	n := s.goroutines()
	crowded := s.Quiet > 0 && s.crowded(n)
	if n > most {
		// Not within shared.Do: if a hundred thousand limits fired at once, each caller would wait
		// for the callers before it, and get no new sample.
		return s.last(s.now()), false
	}
	return s.shared.Do(func() (*Sample, bool) {
		now := s.now()
		if crowded { // returned here and not before Do, to get a sample that was in progress
			return s.last(now), false
		}
		if now.Before(s.looked) { // the last call was in another synctest bubble, with other times
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

// crowded records a call of Take, and reports whether Quiet prevents a sample of n goroutines: the last call was too
// short a time ago, and the last sample, or a call that was not crowded, less than mostQuiet ago. A last call that is
// not before now does not count, since it may have been in another synctest bubble.
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

// last returns the last sample if it is still in memory and began at or before now, and otherwise
// nil. A sample that began later is from another synctest bubble.
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
