package proctree

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"
)

// SPEC 6.6: what a helper has reported is read whole, also when there is no time left; and nothing waits for what it
// has not reported.
func TestHelperReportsInNoTime(t *testing.T) {
	for name, tt := range map[string]struct {
		report       []byte
		closed       bool // the helper has ended
		ended, alone bool
		left         []int
	}{
		"nothing":   {nil, false, false, false, nil},
		"the end":   {nil, true, true, false, nil},
		"alone":     {[]byte{helperAlone}, false, true, true, nil},
		"left":      {[]byte{helperEnded, helperLeft, 1, 1, 1, 1, helperLeft, 2, 2, 2, 2}, true, true, false, []int{0x01010101, 0x02020202}},
		"many left": {append([]byte{helperEnded}, bytes.Repeat([]byte{helperLeft, 1, 1, 1, 1}, 200)...), false, true, false, slices.Repeat([]int{0x01010101}, 200)},
		"one short": {[]byte{helperEnded, helperLeft, 1, 1, 1}, true, true, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.Write(tt.report); err != nil {
				t.Fatal(err)
			}
			if tt.closed {
				w.Close()
			}
			h := &helper{status: r}
			if ended := h.wait(context.Background(), longAgo); ended != tt.ended || h.alone != tt.alone {
				t.Errorf("ended %v, alone %v", ended, h.alone)
			}
			if left := h.left(); !slices.Equal(left, tt.left) {
				t.Errorf("left %#x, want %#x", left, tt.left)
			}
		})
	}
}
