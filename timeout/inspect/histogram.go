package inspect

import (
	"math/bits"
	"time"
)

// A histogram counts durations in a fixed amount of memory. The bounds of its buckets are 1/8 of an
// octave apart, so a percentile is at most an eighth too high.
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

// bucketOf combines the octave of a number of microseconds with the bits after its first.
func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < perOctave {
		return int(us)
	}
	octave := bits.Len64(us) - octaveBits // 1 for perOctave to 2*perOctave-1
	return min(octave*perOctave+int(us>>(octave-1)&(perOctave-1)), len(histogram{}.buckets)-1)
}

// top returns the end of a bucket, which belongs to the next bucket.
func top(bucket int) time.Duration {
	octave, rest := bucket/perOctave, bucket%perOctave
	if octave == 0 {
		return time.Duration(rest+1) * time.Microsecond
	}
	return time.Duration((perOctave+rest+1)<<(octave-1)) * time.Microsecond
}

// percentile returns a duration that the given percentage of the durations does not exceed, rounded
// up to the end of a bucket, but at most the longest duration.
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
