package stacks

import (
	"runtime"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

const (
	// A sample is paid for with price times the time that it took: until that has
	// passed, the next has to be on credit. The credit makes a few samples possible one
	// after the other in a process of ordinary size, where one takes some 100 µs.
	price  = 100
	credit = price * 5 * time.Millisecond
	// mostPaid is the longest time that one sample has to be paid for. One that was
	// taken while the machine stood still must not be the last for hours.
	mostPaid = price * 250 * time.Millisecond

	// Text of a goroutine, before anything is known, and of all of them.
	textGuess = 1 << 10
	textLeast = 64 << 10
	textMost  = 128 << 20
)

// A Sampler takes samples. Only Frame has to be set. It may be used by any number of
// goroutines, and its fields must not be changed once it is.
//
// It does not forecast what a sample will take. That depends on how deep the stacks are
// and how busy the machine is, and a forecast that was once too high forbids the sample
// that would correct it. A bound on the number of goroutines is coarse and always right.
type Sampler struct {
	// Frame tells the goroutines that are looked for: it is in their traces, up to the
	// bracket before the argument that tells them apart.
	Frame string

	// What it runs on: time.Now, runtime.NumGoroutine and runtime.Stack where nil.
	Now        func() time.Time
	Goroutines func() int
	Dump       func(buf []byte) int

	shared coalesce.Call[*Sample]

	recent atomic.Pointer[weak.Pointer[Sample]]

	// What follows is for who has the turn in shared.
	looked time.Time // when somebody last asked
	paid   time.Time // until when the samples so far are paid for
	text   int       // of a goroutine in the last sample
}

// Take returns a sample that was begun after the call, and true; or, where that would be
// of more than most goroutines or beyond the ration, the last one, or nil, and false.
func (s *Sampler) Take(most int) (sample *Sample, fresh bool) {
	if s.goroutines() > most {
		// Without a turn: where a hundred thousand limits fire at once, they would come to
		// their nil one after the other, each after a switch of goroutines.
		return s.last(s.now()), false
	}
	return s.shared.Do(func() (*Sample, bool) {
		now := s.now()
		if now.Before(s.looked) { // it is another synctest bubble's time
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
		recent := weak.Make(sample)
		s.recent.Store(&recent)
		s.paid = s.paid.Add(min(price*s.now().Sub(now), mostPaid))
		return sample, true
	})
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
	// Each try stops the world, so the first should do.
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
