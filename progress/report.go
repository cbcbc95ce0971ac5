package progress

import (
	"context"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Update is how far a tool has come.
type Update struct {
	// Progress counts in any unit, and should grow. What is not more than what the client
	// has been told already, NaN and the infinities say no more than that the tool lives.
	Progress float64
	// Total is what Progress is on its way to, in the same unit; 0 where that is unknown, and
	// so is what is negative, NaN or infinite.
	Total float64
	// Message is for a person; may be empty.
	Message string
}

// Report is a heartbeat that carries u: it renews the idle limits of the execution of
// ctx and of those around it, and is what the client gets next, unless a newer update
// comes first. It does not block. Outside an execution it does nothing. It is safe for
// concurrent use, and costs one allocation.
//
// Sinks of package heartbeat find it as a *Update, which they must not change.
func Report(ctx context.Context, u Update) {
	c := pulse.Of(ctx)
	if c == nil {
		return
	}
	// One object for the update and for the interface that points to it, which
	// heartbeat.BeatWith would allocate apart.
	d := &struct {
		detail any
		update Update
	}{update: u}
	d.detail = &d.update
	c.BeatWith(&d.detail)
}
