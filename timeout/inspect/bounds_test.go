package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A percentile is never too low, and at most an eighth too high.
func TestPercentiles(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, most := range []time.Duration{20 * time.Microsecond, time.Second, 1000 * time.Hour, 1<<63 - 1} {
		var h histogram
		var all []time.Duration
		for range 1000 {
			d := time.Duration(rnd.Int64N(int64(most)))
			h.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, percent := range []uint64{1, 50, 95, 99, 100} {
			exact, got := all[percent*10-1], h.percentile(percent)
			if limit := exact + exact/8 + time.Microsecond; got < exact || (got > limit && most < 1<<63-1) {
				t.Errorf("up to %v, %d %%: %v, exact is %v", most, percent, got, exact)
			}
		}
	}
	if got := (&histogram{}).percentile(50); got != 0 {
		t.Errorf("%v of nothing", got)
	}
}

// The bounds of the buckets meet, and every duration falls into its own bucket.
func TestBuckets(t *testing.T) {
	for b := range len(histogram{}.buckets) - 1 {
		if end := top(b); bucketOf(end-time.Microsecond) != b || bucketOf(end) != b+1 {
			t.Fatalf("bucket %d ends at %v, which is in %d, and what is before it in %d", b, end, bucketOf(end), bucketOf(end-time.Microsecond))
		}
	}
}

// SPEC 14.1: the suggestion is the smallest round value that is at least three times the longest
// silence of the runs that succeeded, once there are 20.
func TestSuggestion(t *testing.T) {
	for _, tt := range []struct{ silence, want time.Duration }{
		{0, time.Second}, {time.Second / 3, time.Second}, {time.Second/3 + 1, 2 * time.Second}, {time.Second, 5 * time.Second},
		{20 * time.Second, time.Minute}, {20*time.Second + 1, 2 * time.Minute}, {10 * time.Minute, 30 * time.Minute},
		{10*time.Minute + 1, time.Hour}, {20 * time.Minute, time.Hour}, {20*time.Minute + 1, 2 * time.Hour},
	} {
		var stats toolStats
		for n := range 21 {
			if got := stats.suggested(); n < 20 && got != 0 || n == 20 && got != tt.want {
				t.Errorf("silence %v after %d runs: %v, want %v", tt.silence, n, got, tt.want)
			}
			stats.add(&ended{row: row{Outcome: succeeded, LongestGap: millis(tt.silence * time.Duration(n) / 19)}})
			stats.add(&ended{row: row{Outcome: failed, LongestGap: millis(time.Hour)}}) // does not count
		}
	}
}

// SPEC 14.4: memory is bounded, whatever runs.
func TestBounds(t *testing.T) {
	r := newRecorder()
	const n = 1500
	long := strings.Repeat("ä", 10_000)
	for i := range n {
		r.finished(context.Background(), timeout.Snapshot{
			ID:        uint64(i + 1),
			Figures:   timeout.Figures{Tool: fmt.Sprint("tool ", i, long), Detail: long, Stack: []byte(strings.Repeat("x", 64<<10))},
			Err:       fmt.Errorf("%s %w", long, errors.New(long)),
			Leftovers: long,
		})
	}
	recent := r.recent(2*maxEnded, func(*ended) bool { return true })
	if len(recent) != maxEnded || recent[0].ID != n || recent[maxEnded-1].ID != n-maxEnded+1 {
		t.Errorf("%d remembered, from %d to %d", len(recent), recent[0].ID, recent[len(recent)-1].ID)
	}
	for _, e := range recent {
		if len(e.Tool)+len(e.Error)+len(e.Detail) > 3*(maxText+len("…")) || len(e.Stack) > maxStack+len("…") || len(e.Leftovers) > maxLeftovers+len("…") {
			t.Fatalf("%d bytes of error, %d of detail, %d of stack", len(e.Error), len(e.Detail), len(e.Stack))
		}
	}
	if len(r.tools) != maxTools || r.others != n-maxTools {
		t.Errorf("%d tools and %d runs of others", len(r.tools), r.others)
	}
}

// SPEC 14.4: a text that is part of a large one does not keep that in memory.
func TestPartsOfLargeTexts(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	r, before := newRecorder(), heap()
	for range 64 {
		part := strings.Repeat("x", 1<<20)[:10]
		r.finished(t.Context(), timeout.Snapshot{Figures: timeout.Figures{Tool: part, Detail: part}, Err: errors.New(part), Leftovers: part})
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("64 outcomes keep %d bytes", grown)
	}
	runtime.KeepAlive(r)
}

// A runText has a text that a run makes.
type runText chan time.Duration

func (took runText) String() string {
	start := time.Now()
	_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.Config{})
	took <- time.Since(start)
	return "text"
}

// SPEC 3.24: a run that ends does not wait for the text of a detail.
func TestTextOfATimeline(t *testing.T) {
	hung := time.AfterFunc(time.Minute, func() { panic("the run waits for the text") })
	defer hung.Stop()
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			detail := make(runText, 2)
			heartbeat.BeatWith(ctx, detail)
			if _, ok := timelineOf(timeout.FromContext(ctx).ID()); !ok {
				t.Error("no timeline")
			}
			if took := <-detail; took > 0 {
				t.Errorf("a run took %v", took)
			}
			return nil
		}, timeout.Config{})
		if err != nil {
			t.Error(err)
		}
	})
}

// A lookText has a text that takes a moment, in which the recorder looks at what is running.
type lookText struct{}

func (lookText) String() string {
	time.Sleep(time.Millisecond)
	theRecorder().look(timeout.Running())
	return "text"
}

// SPEC 14.2: the marks of a timeline are in order of time and not after its end, also if a text takes until others are made.
func TestMarksDuringAText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(time.Minute)
			heartbeat.BeatWith(ctx, lookText{})
			line, ok := timelineOf(timeout.FromContext(ctx).ID())
			if n := len(line.Marks); !ok || n == 0 || line.Marks[n-1].At != line.Elapsed || !slices.IsSortedFunc(line.Marks, func(a, b mark) int { return cmp.Compare(a.At, b.At) }) {
				t.Errorf("%v of %v", line.Marks, line.Elapsed)
			}
			return nil
		}, timeout.Config{})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 14.4: a timeline has a bounded number of marks however long its execution takes. They span
// the whole execution and count everything.
func TestMarks(t *testing.T) {
	var tr track
	const n = 100_000
	for i := range n {
		tr.add(mark{At: time.Duration(i) * time.Second, LastBeat: time.Duration(i) * time.Second, Beats: uint64(i)})
	}
	if len(tr.marks) > maxMarks || len(tr.marks) < maxMarks/4 {
		t.Errorf("%d marks", len(tr.marks))
	}
	for i := 1; i < len(tr.marks); i++ {
		if gap := tr.marks[i].At - tr.marks[i-1].At; gap <= 0 || gap > n*time.Second/8 {
			t.Errorf("mark %d is %v after the one before", i, gap)
		}
	}
	if first, last := tr.marks[0].At, tr.marks[len(tr.marks)-1].At; first > n*time.Second/8 || last < n*time.Second*7/8 {
		t.Errorf("marks from %v to %v", first, last)
	}
}
