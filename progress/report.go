package progress

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// An Update is a report of a tool on its progress.
type Update struct {
	// Progress is the amount of work done, in any unit, and should grow. If Progress is NaN, infinite or not above
	// the value sent before, [Start] sends that value, increased by [Step], with the Message: the client then only
	// learns that the tool is alive.
	Progress float64
	// Total is the value of Progress at the end of the work. 0, a negative value, NaN and infinity mean
	// that it is not known.
	Total float64
	// Message is text for a person. It may be empty.
	Message string
	// waiting is set only in the detail of Await. Such an Update describes a wait, and does not count as progress of
	// the work. Message is then the text at the beginning of the wait, for code outside this package.
	waiting *waiting
}

// String returns the message followed by the progress with at most three decimals, such as "file 37 of 100" or, if
// the total is unknown, "starting (1)". If the message already contains the number, String returns the message
// alone. A progress that rounds to 0, such as the first steps of [Step], is shown only with a total, and a progress
// that is NaN or infinite is not shown.
func (u Update) String() string {
	u.Message = u.message()
	done := u.Progress
	if math.Abs(done) < 1e12 {
		done = math.Round(done*1000) / 1000
	}
	total := finite(u.Total)
	if math.IsNaN(done) || math.IsInf(done, 0) || done == 0 && total == 0 {
		return u.Message
	}
	at := human.Number(done)
	switch {
	case strings.Contains(u.Message, at) || strings.Contains(u.Message, strconv.FormatFloat(u.Progress, 'f', -1, 64)):
		return u.Message
	case total > 0:
		return strings.TrimPrefix(u.Message+" "+at+" of "+human.Number(total), " ")
	case u.Message != "":
		return u.Message + " (" + at + ")"
	}
	return at
}

// message returns the message. The message of a wait has the current times.
func (u *Update) message() string {
	if u.waiting != nil {
		return u.waiting.String()
	}
	return u.Message
}

// Report records a heartbeat with u as its detail: it renews the idle limits of the execution of ctx and of the
// enclosing executions, and u is the next update that [Start] sends to the client, unless a newer one comes first.
// Report does not block, is safe for concurrent use and costs one allocation. Outside an execution it does nothing.
//
// The sinks of package heartbeat receive the detail as a *Update, which they must not change.
func Report(ctx context.Context, u Update) {
	if c := pulse.Of(ctx); c != nil {
		c.BeatWith(detailOf(u))
	}
}

// UpdateOf converts a heartbeat detail to an Update. An *Update is copied, with 0 in place of a Progress that is not
// finite and of a Total that is negative or not finite. A string, or the result of a String method, for which
// UpdateOf waits at most 1 s, becomes the Message. Any other detail is private to the tool: UpdateOf returns the
// zero Update, also for a nil *Update. The Message has no white space around it; if it is longer than 256 bytes, the
// rest is replaced by "...".
func UpdateOf(detail any) (u Update) {
	switch d := detail.(type) {
	case string:
		u.Message = d
	case *Update:
		if d != nil {
			u = *d
			if u.waiting != nil {
				u.Message, u.waiting = texts.Of(u.waiting), nil // rendering calls the tool's Words
			}
		}
	case fmt.Stringer:
		u.Message = texts.Of(d)
	}
	u.Message = strings.TrimSpace(u.Message)
	if len(u.Message) > maxMessage {
		u.Message = strings.ToValidUTF8(u.Message[:maxMessage], "") + "..."
	}
	if math.IsNaN(u.Progress) || math.IsInf(u.Progress, 0) {
		u.Progress = 0
	}
	u.Total = finite(u.Total)
	return u
}

const maxMessage = 256

func detailOf(u Update) *any {
	// One object holds the update and the interface that points to it; heartbeat.BeatWith would
	// allocate them separately.
	d := &struct {
		detail any
		update Update
	}{update: u}
	d.detail = &d.update
	return &d.detail
}
