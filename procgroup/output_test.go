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

// SPEC 6.3: as much is kept as there may be, the last MiB by default; the counts are exact.
func TestKeptOutput(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		size, head, tail int // written, and kept of it
		option           procgroup.Option
	}{
		{6, 0, 6, procgroup.Capture{Tail: 7}},
		{6, 0, 6, procgroup.Capture{Tail: 6}},
		{6, 0, 5, procgroup.Capture{Tail: 5}},
		{6, 0, 1, procgroup.Capture{Tail: 1}},
		{3 * mib, 0, mib, nil},
		{3 * mib, mib, mib, procgroup.Capture{Head: mib}},
		{3 * mib, 0, 0, procgroup.Capture{Tail: -1}},
		{3 * mib, mib, 0, procgroup.Capture{Head: mib, Tail: -1}},
		{3 * mib, 0, 3 * mib, procgroup.Capture{Tail: math.MaxInt}},
	} {
		all := pattern(row.size)
		want := all[:row.head] + all[row.size-row.tail:]
		Test(t, Scenario{Name: fmt.Sprint(row), Script: Script{writes(row.size)}, Options: []procgroup.Option{row.option, limits(time.Hour, time.Second)}, Check: func(r *Run) {
			for _, o := range []procgroup.Output{r.Result.Stdout, r.Result.Combined} {
				if string(o.Bytes()) != want || o.Total != int64(row.size) || o.Dropped != int64(row.size-len(want)) {
					r.Errorf("%d of %d bytes kept, %d dropped", len(o.Bytes()), o.Total, o.Dropped)
				}
			}
		}})
	}
}
