package progress

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Update is how far a tool has come.
type Update struct {
	// Progress counts in any unit, and should grow. What is not more than what the client
	// has got already, NaN and the infinities say no more than that the tool lives.
	Progress float64
	// Total is what Progress is on its way to, in the same unit; 0 where that is unknown, and
	// so is what is negative, NaN or infinite.
	Total float64
	// Message is for a person; may be empty.
	Message string
	// waiting says that Message is what the tool waits for, and no news of the work. [Await] sets
	// it.
	waiting bool
}

// String returns the message and how far it is, such as "file 37 of 100", with at most three
// decimals. A message that says the number itself stands alone.
func (u Update) String() string {
	if math.IsNaN(u.Progress) || math.IsInf(u.Progress, 0) || (u.Progress == 0 && !(u.Total > 0)) {
		return u.Message
	}
	at := human.Number(u.Progress)
	if strings.Contains(u.Message, at) || strings.Contains(u.Message, strconv.FormatFloat(u.Progress, 'f', -1, 64)) {
		return u.Message
	}
	if u.Total > 0 && !math.IsInf(u.Total, 0) {
		at += " of " + human.Number(u.Total)
	}
	return strings.TrimPrefix(u.Message+" "+at, " ")
}

// Report is a heartbeat that carries u: it renews the idle limits of the execution of ctx and of
// those around it, and is what the client gets next, unless a newer update comes first. It does
// not block. Outside an execution it does nothing. It is safe for concurrent use, and costs one
// allocation.
//
// Sinks of package heartbeat find it as a *Update, which they must not change.
func Report(ctx context.Context, u Update) {
	if c := pulse.Of(ctx); c != nil {
		c.BeatWith(detailOf(u))
	}
}

// UpdateOf returns what may be said to others of a detail of the heartbeat: a *Update as it is, and
// a text, or what has a String method, as the Message. Anything else is the tool's own business,
// and the zero Update. A message is cut to 256 bytes.
func UpdateOf(detail any) (u Update) {
	switch d := detail.(type) {
	case string:
		u.Message = d
	case *Update:
		if d != nil {
			u = *d
		}
	case fmt.Stringer:
		u.Message = fmt.Sprint(d) // survives one that panics
	}
	u.Message = strings.TrimSpace(u.Message)
	if len(u.Message) > maxMessage {
		u.Message = strings.ToValidUTF8(u.Message[:maxMessage], "") + "..."
	}
	if math.IsNaN(u.Progress) || math.IsInf(u.Progress, 0) {
		u.Progress = 0
	}
	u.Total = known(u.Total)
	return u
}

const maxMessage = 256

func detailOf(u Update) *any {
	// One object for the update and for the interface that points to it, which
	// heartbeat.BeatWith would allocate apart.
	d := &struct {
		detail any
		update Update
	}{update: u}
	d.detail = &d.update
	return &d.detail
}
