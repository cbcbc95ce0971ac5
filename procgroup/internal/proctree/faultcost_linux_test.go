package proctree

import (
	"testing"
	"time"
)

// A page fault takes some time on every machine, and on none a millisecond.
func TestFaultCost(t *testing.T) {
	if c := faultCost(); c <= 0 || c > time.Millisecond {
		t.Error(c)
	}
}
