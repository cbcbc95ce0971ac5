package procgroup

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A starvedTree says that one of its processes was killed for want of memory. Few machines can show that.
type starvedTree struct {
	proctree.Tree
	atLimit bool
}

func (t starvedTree) Total() proctree.Total {
	return proctree.Total{Starved: true, AtLimit: t.atLimit}
}

// SPEC 6.21, 6.24: a tree that has run out of memory is an outcome of its own, whatever its leader says, unless a limit
// or an abort came first. All reports agree.
func TestRanOutOfMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		script  string
		limits  timeout.Config
		inForce int64
		abort   bool
		reason  Reason
		code    int
		own     int // exit code of the leader
		message string
	}{
		"leader ends with 0":          {"exit 0", timeout.Config{}, 512 << 20, false, OutOfMemory, 137, 0, "TLC ran out of memory (512 MiB)."},
		"leader fails":                {"exit 3", timeout.Config{}, 512<<20 + 1, false, OutOfMemory, 137, 3, "TLC ran out of memory (536870913 bytes)."},
		"leader is killed":            {"kill -KILL $$", timeout.Config{}, 1 << 30, false, OutOfMemory, 137, -1, "TLC ran out of memory (1 GiB)."},
		"by a limit around it":        {"exit 0", timeout.Config{}, 0, false, OutOfMemory, 137, 0, "TLC ran out of memory."},
		"by a narrower one around it": {"exit 0", timeout.Config{}, 512 << 20, false, OutOfMemory, 137, 0, "TLC ran out of memory."},
		"after a limit":               {"sleep 60", timeout.Config{Total: time.Second}, 1 << 30, false, TotalTimeout, 124, -1, "TLC process timed out after 1000ms."},
		"after an abort":              {"sleep 60", timeout.Config{}, 1 << 30, true, Aborted, 130, -1, "TLC process was aborted."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var told []timeout.Snapshot
			hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, s)
			}}
			p := newProcess(t.Context(), exec.Command("sh", "-c", tc.script),
				[]Option{Limits(tc.limits), WithOptions(timeout.WithName("TLC"), timeout.WithHooks(hooks))})
			p.ctx, p.cancel = context.WithCancelCause(t.Context())
			go p.supervise(p.ctx)
			p.startErr = p.spawn(<-p.entered)
			p.tree, p.inForce.Memory = starvedTree{p.tree, name != "by a narrower one around it"}, tc.inForce
			close(p.spawned)
			if p.startErr != nil {
				t.Fatal(p.startErr)
			}
			if tc.abort {
				p.cancel(nil)
			}
			r, err := p.Wait()
			if r.Reason != tc.reason || r.ExitCode != tc.code || r.Message != tc.message || r.State.ExitCode() != tc.own || r.Resources.Memory != tc.inForce {
				t.Errorf("%v %d %q %v %v", r.Reason, r.ExitCode, r.Message, r.State, r.Resources)
			}
			if errors.Is(err, OutOfMemory) != (tc.reason == OutOfMemory) || timeout.ExitCode(err) != tc.code {
				t.Errorf("%v", err)
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) != (tc.own != 0) {
				t.Errorf("the command's own error is %v", exit)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(told) != 1 || told[0].Err != err {
				t.Errorf("hooks are told %v, the caller %v", told, err)
			}
			if tc.reason == OutOfMemory && err.Error() != tc.message {
				t.Errorf("error %q", err)
			}
		})
	}
}
