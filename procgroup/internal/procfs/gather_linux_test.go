package procfs

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One read that is slow holds up no other, and is late once the patience is over.
func TestGather(t *testing.T) {
	const n, patience = 300, 100 * time.Millisecond
	for name, tt := range map[string]struct {
		takes       map[int]time.Duration // others take no time
		late        []int
		least, most time.Duration
	}{
		"none is slow":              {nil, nil, 0, 0},
		"the first is slow":         {map[int]time.Duration{0: 50 * time.Millisecond}, nil, 50 * time.Millisecond, 50 * time.Millisecond},
		"one is stuck":              {map[int]time.Duration{7: time.Hour}, []int{7}, patience, patience + 3*glance},
		"two are stuck, one is not": {map[int]time.Duration{7: time.Hour, 8: 50 * time.Millisecond, 299: time.Hour}, []int{7, 299}, patience, patience + 5*glance},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				values, returned := Gather(NewPatience(patience), n, func(_ *Reader, i int) int {
					time.Sleep(tt.takes[i])
					return i + 1
				})
				took := time.Since(begun)
				for i := range n {
					if late := slices.Contains(tt.late, i); returned[i] == late || values[i] != i+1 && !late {
						t.Errorf("%d: %d, returned: %v", i, values[i], returned[i])
					}
				}
				if took < tt.least || took > tt.most {
					t.Errorf("took %v, want %v to %v", took, tt.least, tt.most)
				}
				time.Sleep(2 * time.Hour) // until what is stuck has ended
			})
		})
	}
}

// The patience is that of a whole look: a second call has what the first has left, and reads that come one by
// one just in time do not renew it.
func TestPatienceIsSpentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 100 * time.Millisecond
		p, begun := NewPatience(patience), time.Now()
		for i := range 3 {
			_, returned := Gather(p, 1000, func(*Reader, int) int {
				time.Sleep(60 * time.Millisecond)
				return 0
			})
			if slices.Contains(returned, true) != (i == 0) || !slices.Contains(returned, false) {
				t.Errorf("call %d: %v", i, returned)
			}
		}
		if took := time.Since(begun); took < patience || took > 4*patience+3*maxWorkers*glance {
			t.Errorf("took %v", took)
		}
		time.Sleep(time.Hour)
	})
}

// Where more reads are stuck than there are workers, the rest is late too.
func TestGatherHasAFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int32
		_, returned := Gather(NewPatience(100*time.Millisecond), 1000, func(*Reader, int) int {
			under.Add(1)
			time.Sleep(time.Hour)
			return 0
		})
		if n := under.Load(); n != maxWorkers || slices.Contains(returned, true) {
			t.Errorf("%d reads under way", n)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A glance that comes late, as in a host that was stopped, is no evidence that reads are slow.
func TestPatienceOfAStoppedHost(t *testing.T) {
	p := NewPatience(100 * time.Millisecond)
	for i := 1; i < minGlances; i++ {
		if !p.spend(time.Hour) {
			t.Fatalf("it is over after %d glances", i)
		}
	}
	if p.spend(time.Hour) {
		t.Errorf("it is not over after %d glances", minGlances)
	}
}

// There is one read of a file at a time. Another one of the same file is made after it, or is late.
func TestOneReadOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most, made atomic.Int32
		read := func(r *Reader) error {
			return r.ask("Environ", 1, func() {
				most.Store(max(most.Load(), under.Add(1)))
				made.Add(1)
				time.Sleep(70 * time.Millisecond)
				under.Add(-1)
			})
		}
		errs, returned := Gather(NewPatience(100*time.Millisecond), 5, func(r *Reader, _ int) error { return read(r) })
		if errs[0] != nil || !returned[0] || slices.Contains(returned[3:], true) {
			t.Errorf("%v, %v", errs, returned)
		}
		synctest.Wait()
		if n := under.Load(); n > 1 {
			t.Errorf("%d reads under way", n)
		}
		time.Sleep(time.Second)
		if err := read(new(Reader)); err != nil || most.Load() != 1 || under.Load() != 0 {
			t.Errorf("%v; %d reads at the same time", err, most.Load())
		}
		if len(questions.all) != 0 {
			t.Errorf("%d questions are left", len(questions.all))
		}
	})
}
