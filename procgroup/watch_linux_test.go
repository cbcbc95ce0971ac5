package procgroup

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A slowTree is one at which a look takes until it is released.
type slowTree struct {
	proctree.Tree
	looking, released chan struct{}
	closed            chan bool // whether the look was over
}

func (t slowTree) Meter(bool) proctree.Meter {
	return func() (proctree.Usage, bool) {
		t.looking <- struct{}{}
		<-t.released
		return proctree.Usage{}, true
	}
}

func (t slowTree) Close() {
	select {
	case <-t.released:
		t.closed <- true
	default:
		t.closed <- false
	}
	t.Tree.Close()
}

// SPEC 6.11: the call is over in time, whatever a look takes that was under way when the limit fired.
func TestLookUnderWayAtTheLimit(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "120")
	p := newProcess(t.Context(), cmd, []Option{WithLimits(timeout.Config{Total: 8 * time.Second, Idle: 12 * time.Second}), Activity{CPU: true}})
	if err := p.activity.check(); err != nil {
		t.Skip(err)
	}
	p.ctx, p.cancel = context.WithCancelCause(t.Context())
	go p.supervise(p.ctx)
	p.startErr = p.spawn(<-p.entered)
	tree := slowTree{p.tree, make(chan struct{}, 100), make(chan struct{}), make(chan bool, 1)}
	p.tree = tree
	close(p.spawned)
	if p.startErr != nil {
		t.Fatal(p.startErr)
	}
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Error("it waits for the look")
	}
	if len(tree.looking) == 0 {
		t.Error("no look was under way")
	}
	close(tree.released)
	if r, err := p.Wait(); r == nil || r.Reason != TotalTimeout || r.State == nil {
		t.Errorf("%v\n%+v", err, r)
	}
	if !<-tree.closed {
		t.Error("the tree was closed while a look was under way")
	}
}
