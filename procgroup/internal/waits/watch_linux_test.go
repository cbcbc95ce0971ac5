package waits

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A history is what a tree has used of a processor, and what it was found to do by a look at all its threads, at a time.
type history struct {
	used   func(at time.Duration) time.Duration
	does   func(at time.Duration) State
	before State // what it may be found to do before it begins to wait, and is no discovery
}

// watchHistory looks at it as often as the meter says, until it is found to wait after begins. It returns when that was,
// and how many looks there were of each kind.
func watchHistory(h history, begins, until time.Duration) (found time.Duration, looks, examined int) {
	begun := time.Now()
	at := func() time.Duration { return time.Since(begun) }
	w := &inputWatch{
		usage: func(members []usedCPU) (time.Duration, bool) { return h.used(at()), len(members) > 0 },
		examine: func() (State, int, []usedCPU, bool) {
			examined++
			return h.does(at()), 1, []usedCPU{{procfs.Key{PID: 1}, h.used(at())}}, false
		},
	}
	time.Sleep(UntilSilent(LookEvery))
	for at() < until {
		looks++
		l := w.look()
		if l.State != None && l.State != h.before && at() >= begins {
			return at(), looks, examined
		}
		time.Sleep(UntilLook(l.Next))
	}
	return 0, looks, examined
}

// SPEC 6.18: a wait is found within 1 s of the moment at which it begins, whatever the tree did before and whenever that
// is.
func TestWaitIsFoundWithinASecond(t *testing.T) {
	const unit = 10 * time.Millisecond
	for _, tt := range []struct {
		name string
		// used is the processor time at a time, if it waits from begins on.
		used   func(at, begins time.Duration) time.Duration
		before State
	}{
		{"it slept", func(at, begins time.Duration) time.Duration {
			if at < begins {
				return unit
			}
			return unit + time.Microsecond
		}, None},
		{"it slept, and worked for a moment", func(at, begins time.Duration) time.Duration {
			return unit + max(0, min(at-begins+5*unit, 5*unit))
		}, None},
		{"it worked", func(at, begins time.Duration) time.Duration { return min(at, begins) }, None},
		{"it woke up now and then, and does so", func(at, _ time.Duration) time.Duration {
			return at.Truncate(7*unit) / 200
		}, None},
		{"it waited probably", func(at, begins time.Duration) time.Duration { return min(at, begins) / 1000 }, InputIfPrompted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			longest := time.Duration(0)
			for begins := 2 * time.Second; begins < 4*time.Second; begins += unit {
				synctest.Test(t, func(t *testing.T) {
					h := history{
						before: tt.before,
						used:   func(at time.Duration) time.Duration { return tt.used(at, begins) },
						does: func(at time.Duration) State {
							if at < begins {
								return tt.before
							}
							return InputCertainly
						},
					}
					found, _, _ := watchHistory(h, begins, begins+5*time.Second)
					if found == 0 || found-begins > time.Second {
						t.Errorf("begins at %v and is found at %v", begins, found)
					}
					longest = max(longest, found-begins)
				})
			}
			t.Log("found after at most", longest)
		})
	}
}

// A tree that does nothing is looked at twice, at all its threads; after that only its processor time is read,
// less than twice a second. One that works is hardly looked at.
func TestLooksAtATree(t *testing.T) {
	for _, tt := range []struct {
		name     string
		used     func(at time.Duration) time.Duration
		looks    int
		examined int
	}{
		{"it does nothing", func(time.Duration) time.Duration { return time.Millisecond }, 18, 2},
		{"it works", func(at time.Duration) time.Duration { return at }, 34, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := history{used: tt.used, does: func(time.Duration) State { return None }}
				_, looks, examined := watchHistory(h, time.Hour, 10*time.Second)
				if looks > tt.looks || examined > tt.examined {
					t.Errorf("%d looks in 10 s, %d of them at all threads; want at most %d and %d", looks, examined, tt.looks, tt.examined)
				}
			})
		})
	}
}

// A wait that is different at each look is not claimed.
func TestWaitIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := history{
			used: func(at time.Duration) time.Duration { return at / 1000 },
			does: func(time.Duration) State {
				n++
				return []State{None, InputCertainly, InputIfPrompted}[n%3]
			},
		}
		if found, _, _ := watchHistory(h, 0, 20*time.Second); found != 0 {
			t.Error("found at", found)
		}
	})
}

// SPEC 6.18: a process that waits for a child which a control group does not list any more is about to go on.
func TestWaitForAChildThatEnds(t *testing.T) {
	p := func(pid, parent int, main class) (w waiter) {
		w.PID, w.Parent, w.class = pid, parent, main
		return w
	}
	for _, tt := range []struct {
		name string
		all  []waiter
		want State
	}{
		{"a child reads", []waiter{p(1, 0, onChild), p(2, 1, onInput)}, InputCertainly},
		{"a background shell's child ends", []waiter{p(1, 0, onInput), p(2, 1, onChild)}, None},
	} {
		childless(tt.all)
		if got, _ := verdict(tt.all); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A wait is confirmed by a second look at all threads, also if nothing has used a processor: none may have been free.
func TestWaitIsConfirmedByState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := history{
			used: func(time.Duration) time.Duration { return time.Millisecond },
			does: func(time.Duration) State {
				if n++; n == 1 {
					return InputCertainly
				}
				return None
			},
		}
		if found, _, _ := watchHistory(h, 0, 5*time.Second); found != 0 {
			t.Error("found at", found)
		}
	})
}

// The looks at all trees take place together, and none of them much later or earlier than it is due.
func TestLooksAreTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := make(map[time.Duration]int)
		begun := time.Now()
		for i := range 1000 {
			time.Sleep(time.Millisecond)
			due := LookEvery + time.Duration(i%7)*10*time.Millisecond
			in, silent := UntilLook(due), UntilSilent(due)
			if in < due-lookGrid/2 || in > due+lookGrid/2 || silent < due || silent > due+lookGrid {
				t.Fatal(fmt.Sprint("due in ", due, ": ", in, ", and in silence ", silent))
			}
			at[time.Since(begun)+in]++
			at[time.Since(begun)+silent]++
		}
		if len(at) > 13 {
			t.Errorf("looks at %d moments in 1.3 s", len(at))
		}
	})
}
