package inspect

import (
	"math/bits"
	"time"
)

// A histogram counts durations in a fixed amount of memory. There are eight buckets per octave, so a percentile is
// too high by an eighth at most.
type histogram struct {
	count   uint64
	max     time.Duration
	buckets [48 * perOctave]uint32 // from 1 µs to 35 years
}

const (
	perOctave  = 1 << octaveBits
	octaveBits = 3
)

func (h *histogram) add(d time.Duration) {
	h.count++
	h.max = max(h.max, d)
	if b := &h.buckets[bucketOf(d)]; *b < 1<<32-1 {
		*b++
	}
}

// bucketOf returns the index of the bucket of d: the octave of its number of microseconds, followed by the three bits
// after the highest.
func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < perOctave {
		return int(us)
	}
	octave := bits.Len64(us) - octaveBits // 1 if us is from perOctave to 2*perOctave-1
	return min(octave*perOctave+int(us>>(octave-1)&(perOctave-1)), len(histogram{}.buckets)-1)
}

// top returns the upper bound of a bucket, which itself belongs to the next bucket.
func top(bucket int) time.Duration {
	octave, rest := bucket/perOctave, bucket%perOctave
	if octave == 0 {
		return time.Duration(rest+1) * time.Microsecond
	}
	return time.Duration((perOctave+rest+1)<<(octave-1)) * time.Microsecond
}

// percentile returns a duration that the given percentage of the durations does not exceed: the upper bound of a
// bucket or, if that is less, the longest duration. It returns 0 if there are no durations.
func (h *histogram) percentile(percent uint64) time.Duration {
	if h.count == 0 {
		return 0
	}
	want := (h.count*percent + 99) / 100
	var sum uint64
	for i, n := range h.buckets {
		if sum += uint64(n); sum >= want && i < len(h.buckets)-1 { // the last bucket has no end
			return min(top(i), h.max)
		}
	}
	return h.max
}
