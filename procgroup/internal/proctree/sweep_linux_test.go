package proctree

import (
	"slices"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// SPEC 6.6, 6.7: a sweep goes on as long as members are found, looks twice after that, and waits for a while for
// processes that do not show whether they are members.
func TestPhasesOfASweep(t *testing.T) {
	p := func(pids ...int) (all []proc) {
		for _, pid := range pids {
			all = append(all, proc{Process: procfs.Process{PID: pid}})
		}
		return all
	}
	var nothing sighting
	member, unsure := sighting{caught: p(1)}, sighting{doubtful: p(2)}
	blind, partial := sighting{blind: true}, sighting{partial: true}
	for name, tt := range map[string]struct {
		seen []sighting
		want []phase
	}{
		"nothing":               {[]sighting{nothing}, []phase{over}},
		"a member":              {[]sighting{member, nothing, nothing}, []phase{hunt, confirm, over}},
		"a member comes back":   {[]sighting{member, nothing, member, nothing, nothing}, []phase{hunt, confirm, hunt, confirm, over}},
		"blind":                 {[]sighting{blind, blind, nothing}, []phase{hunt, hunt, over}},
		"blind after a member":  {[]sighting{member, nothing, blind, nothing}, []phase{hunt, confirm, confirm, over}},
		"a process in an exec":  {[]sighting{unsure, nothing}, []phase{hunt, over}},
		"a stranger that stays": {[]sighting{unsure, unsure, unsure, unsure, unsure, unsure}, []phase{hunt, doubt, doubt, doubt, doubt, over}},
		"too many new ones":     {[]sighting{partial, partial, partial, partial, partial}, []phase{doubt, doubt, doubt, doubt, over}},
		"a stranger that stays, and a member": {[]sighting{member, unsure, unsure, unsure, unsure, unsure, unsure, unsure},
			[]phase{hunt, hunt, doubt, doubt, doubt, doubt, confirm, over}},
		"a stranger turns out to be a member": {[]sighting{unsure, unsure, member, nothing, nothing}, []phase{hunt, doubt, hunt, confirm, over}},
	} {
		var s sweep
		var got []phase
		for _, seen := range tt.seen {
			got = append(got, s.next(seen))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}

	// Others each time are looked for until the deadline where a member was among them, and else not for ever.
	for _, caught := range []bool{true, false} {
		var s sweep
		if caught {
			s.next(member)
		}
		hunts := 0
		for pid := 10; pid < 10+4*maxStrangers && s.next(sighting{doubtful: p(pid)}) == hunt; pid++ {
			hunts++
		}
		if want := map[bool]int{true: 4 * maxStrangers, false: maxStrangers}[caught]; hunts != want {
			t.Errorf("strangers, a member caught %v: %d hunts, want %d", caught, hunts, want)
		}
	}
}
