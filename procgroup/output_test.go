//go:build unix

package procgroup_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// SPEC 6.3: as much is kept as there may be; the counts are exact.
func TestOutputAtTheCap(t *testing.T) {
	for limit, kept := range map[int]string{
		7: "abcdef", 6: "abcdef", 5: "bcdef", 1: "f", 0: "abcdef", math.MaxInt: "abcdef",
	} {
		Test(t, Scenario{
			Name: fmt.Sprint(limit), Script: Script{writes(6)}, Options: []procgroup.Option{procgroup.Capture{Tail: limit}},
			Check: func(r *Run) {
				is(outcome{Stdout: kept, Combined: kept})(r)
				for _, o := range []procgroup.Output{r.Result.Stdout, r.Result.Combined} {
					if o.Total != 6 || o.Dropped != int64(6-len(kept)) || len(o.Bytes()) != len(kept) {
						r.Errorf("%d of %d bytes kept, %d dropped", len(o.Bytes()), o.Total, o.Dropped)
					}
				}
			},
		})
	}
}

// SPEC 6.3: the last MiB of a flood is kept, its beginning on request, or all of it.
func TestFlood(t *testing.T) {
	const size = 3 << 20
	all := make([]byte, size)
	for i := range all {
		all[i] = Byte(int64(i))
	}
	for name, row := range map[string]struct {
		opt        procgroup.Option
		head, tail int
	}{
		"as by default": {nil, 0, 1 << 20},
		"the beginning": {procgroup.Capture{Head: 1 << 20}, 1 << 20, 1 << 20},
		"nothing":       {procgroup.Capture{Tail: -1}, 0, 0},
		"no end":        {procgroup.Capture{Head: 1 << 20, Tail: -1}, 1 << 20, 0},
		"everything":    {procgroup.Capture{Tail: math.MaxInt}, 0, size},
	} {
		Test(t, Scenario{Name: name, Script: Script{writes(size)}, Options: []procgroup.Option{row.opt, limits(time.Hour, time.Second)}, Check: func(r *Run) {
			want := string(all[:row.head]) + string(all[size-row.tail:])
			for _, o := range []procgroup.Output{r.Result.Stdout, r.Result.Combined} {
				if string(o.Bytes()) != want || o.Total != size || o.Dropped != int64(size-len(want)) {
					r.Errorf("%d of %d bytes kept, %d dropped", len(o.Bytes()), o.Total, o.Dropped)
				}
			}
		}})
	}
}
