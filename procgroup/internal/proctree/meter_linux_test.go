package proctree

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What ended between two looks counts once: its own was counted, and then is its parent's.
func TestGrowth(t *testing.T) {
	leader, child, grandchild := procKey{10, 1}, procKey{11, 2}, procKey{12, 3}
	before := map[procKey]spent{
		leader:     {parent: 1, own: 5 * time.Second, children: time.Second, bytes: 100},
		child:      {parent: 10, own: 3 * time.Second, bytes: 40},
		grandchild: {parent: 11, own: 2 * time.Second, bytes: 20},
	}
	for name, tt := range map[string]struct {
		before, now map[procKey]spent
		want        Usage
	}{
		"the first look":   {nil, before, Usage{CPU: 11 * time.Second, IO: 160}},
		"nothing happened": {before, before, Usage{}},
		"all work": {before, map[procKey]spent{
			leader:     {parent: 1, own: 6 * time.Second, children: time.Second, bytes: 101},
			child:      {parent: 10, own: 4 * time.Second, bytes: 42},
			grandchild: {parent: 11, own: 3 * time.Second, bytes: 24},
		}, Usage{CPU: 3 * time.Second, IO: 7}},
		"a new process": {before, map[procKey]spent{
			leader: before[leader], child: before[child], grandchild: before[grandchild],
			{13, 4}: {parent: 12, own: time.Second, bytes: 9},
		}, Usage{CPU: time.Second, IO: 9}},
		"the child was waited for, after another second": {before, map[procKey]spent{
			leader:     {parent: 1, own: 5 * time.Second, children: 5 * time.Second, bytes: 141},
			grandchild: {parent: 1, own: 2 * time.Second, bytes: 20},
		}, Usage{CPU: time.Second, IO: 1}},
		"grandchild and child were, each after another second": {before, map[procKey]spent{
			leader: {parent: 1, own: 5 * time.Second, children: 8 * time.Second, bytes: 163},
		}, Usage{CPU: 2 * time.Second, IO: 3}},
		"nobody waits for the child": {before, map[procKey]spent{
			leader: {parent: 1, own: 6 * time.Second, children: time.Second, bytes: 100}, grandchild: before[grandchild],
		}, Usage{CPU: time.Second, IO: 0}},
		"another process with the same id": {before, map[procKey]spent{
			leader: before[leader], child: before[child], {12, 9}: {parent: 11, own: time.Second, bytes: 3},
		}, Usage{CPU: time.Second, IO: 3}},
	} {
		if diff := cmp.Diff(tt.want, growth(tt.before, tt.now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseIOStat(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0,
		"8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=7 dios=1\n8:16 \n": 1459200 + 314773504,
		"254:0 rbytes=1 wbytes=2\n8:0 rbytes=3 wbytes=4 cost.usage=9\n":                  10,
	} {
		if got := parseIOStat([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestTopFrames(t *testing.T) {
	const stack = "[<0>] hrtimer_nanosleep+0x74/0xf0\n[<0>] common_nsleep+0x30/0x60\n[<0>] a+0x1/0x2\n[<0>] b+0x1/0x2\n"
	if got := topFrames([]byte(stack)); got != "hrtimer_nanosleep < common_nsleep < a" {
		t.Error(got)
	}
}

// What was worst off says how much of the time nobody could work.
func TestStarved(t *testing.T) {
	begun := time.Now()
	at := func(s time.Duration, waited time.Duration) spent {
		return spent{at: begun.Add(s * time.Second), waited: waited * time.Second}
	}
	old, other, young := procKey{10, 1}, procKey{11, 2}, procKey{12, 3}
	before := map[procKey]spent{old: at(0, 100), other: at(1, 0)}
	for name, tt := range map[string]struct {
		now  map[procKey]spent
		want float64
	}{
		"nothing is there":        {nil, 0},
		"nobody waited":           {map[procKey]spent{old: at(4, 100), other: at(5, 0)}, 0},
		"one did":                 {map[procKey]spent{old: at(4, 101), other: at(5, 0)}, 0.25},
		"another more":            {map[procKey]spent{old: at(4, 101), other: at(5, 2)}, 0.5},
		"one that is new":         {map[procKey]spent{young: at(4, 3)}, 0.75},
		"the clocks do not agree": {map[procKey]spent{old: at(4, 105)}, 1},
		"at once":                 {map[procKey]spent{old: at(0, 101)}, 0},
	} {
		if got := starved(before, tt.now, begun); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
