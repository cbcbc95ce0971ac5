//go:build unix

package procgroup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A watched is a machine that notes when it is asked whether its command waits for input.
type watched struct {
	*Machine
	looks []time.Time
}

func (w *watched) WatchInput(tree proctree.Tree) waits.Meter {
	meter := w.Machine.WatchInput(tree)
	return func() waits.Look {
		w.looks = append(w.looks, time.Now())
		return meter()
	}
}

// SPEC 6.18: a command is not looked at while there is output, nor before it was silent for a while.
func TestNoLookDuringOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writing, each = 10 * time.Second, waits.LookEvery - 1
		var script Script
		for range writing / each {
			script = append(script, prints, sleeps(each))
		}
		w := &watched{Machine: New(append(script, prints, Step{Do: Read, N: 1}))}
		cmd, begun := tool(), time.Now()
		cmd.Stdin = w.Silence()
		_, _ = procgroup.Run(machine.With(context.Background(), w), cmd, limits(2*writing, 0))
		if first := writing / each * each; len(w.looks) == 0 || w.looks[0].Sub(begun) < first+waits.LookEvery {
			t.Errorf("it was looked at from %v on, and writes until %v", w.looks[0].Sub(begun), first)
		}
		for _, wrong := range w.Off() {
			t.Error(wrong)
		}
	})
}
