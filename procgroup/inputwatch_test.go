package procgroup

import (
	"context"
	"runtime"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.18: of output that comes at the moment at which a wait is made known, one of the two sees the other, and the wait
// is known no more; nor does progress say anything of it.
func TestInputStirredWhilePublished(t *testing.T) {
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		w := &inputWatch{cell: pulse.Of(ctx), out: &capture.Capture{}}
		wait := InputWait{Pid: 7, Certain: true}
		for range 3000 {
			at := w.events.Load()
			begin, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				<-begin
				w.noteActivity()
			}()
			close(begin)
			runtime.Gosched() // on one processor the other one would always be second
			w.publish(wait, at)
			<-done
			if w.now().Pid != 0 || w.cell.Detail() != nil {
				t.Fatalf("%+v, %v", w.now(), w.cell.Detail())
			}
		}
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
}
