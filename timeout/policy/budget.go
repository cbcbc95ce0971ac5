package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/exact"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// BudgetKey is the key of a [Budget] in the _meta of a tools/call.
const BudgetKey = "io.github.tooldeadline/budget"

// A Budget is the time for which a client waits for the answer to a call: Left in all, and Idle without progress.
// The client sends the Budget with the call. 0 or less means that there is no such limit. On the wire durations are
// in whole milliseconds, rounded down, except that one below 1 ms is a fraction, and a limit that is off is omitted:
//
//	{"leftMs":1800000,"idleMs":30000}
type Budget struct{ Left, Idle time.Duration }

// maxMargin is the longest margin.
const maxMargin = 10 * time.Second

// margin returns the time before the end of a client's limit at which an answer must be sent (SPEC 18.5).
func margin(limit time.Duration) time.Duration { return min(max(limit, 0)/6, maxMargin) }

// Answer returns the limits by which a server must answer so that the answer arrives in time: the limits of b, each
// shortened by a sixth, but by no more than 10 s. heard reports whether the client gets the progress of the call. If
// it does not, it notices only silence: by.Left is then the shorter of the two limits, shortened in this way, and
// by.Idle is 0. A limit that is off stays off. grace is the time after these limits that the server may take to
// create the answer: half of the time by which the shorter limit was shortened.
func (b Budget) Answer(heard bool) (by Budget, grace time.Duration) {
	b.Left, b.Idle = max(b.Left, 0), max(b.Idle, 0)
	if !heard {
		b = Budget{Left: shorter(b.Left, b.Idle)}
	}
	by = Budget{b.Left - margin(b.Left), b.Idle - margin(b.Idle)}
	return by, margin(shorter(b.Left, b.Idle)) / 2
}

// Shorter returns a Budget with the shorter Left and the shorter Idle of b and c. A limit that is off counts as
// longer than any other.
func (b Budget) Shorter(c Budget) Budget {
	return Budget{shorter(b.Left, c.Left), shorter(b.Idle, c.Idle)}
}

// shorter returns the shorter of two limits, where 0 or less means no limit, or 0 if both are off.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Object returns the wire form of b, for an SDK that takes JSON objects as maps.
func (b Budget) Object() map[string]any {
	o := make(map[string]any, 2)
	put := func(name string, d time.Duration) {
		if d > time.Millisecond {
			d = d.Truncate(time.Millisecond)
		}
		if d > 0 {
			o[name] = millis(d)
		}
	}
	put("leftMs", b.Left)
	put("idleMs", b.Idle)
	return o
}

// ReadBudget returns the budget under [BudgetKey] in the _meta of a call, or the zero Budget if there is none. If
// leftMs or idleMs is not a number from 0 to 2^53, the error wraps a [*timeout.ConfigError]. Anything but an object
// or a JSON null under BudgetKey is an error, too. After an error the Budget is zero: a server ignores a budget that
// it cannot read. A number that a time.Duration cannot hold becomes the longest Duration. Unknown names are ignored,
// and a name that is given twice is an error.
//
// The value is a [json.RawMessage], where an empty one counts as null, or a map[string]any. A number in that map is an
// int, an int64, a float64, a [json.Number] or a [json.RawMessage]. A value of any other type of Go is an error.
func ReadBudget(meta map[string]any) (Budget, error) {
	value, ok := meta[BudgetKey]
	if !ok {
		return Budget{}, nil
	}
	var fields map[string]any
	switch value := value.(type) { // a type switch, which calls no method of the value
	case nil:
	case map[string]any:
		fields = value
	case json.RawMessage:
		if err := exact.Unmarshal(value, &fields); len(value) > 0 && err != nil {
			return Budget{}, fmt.Errorf("policy: a budget: %w", err)
		}
	default:
		return Budget{}, &timeout.ConfigError{Key: BudgetKey, Value: fmt.Sprintf("a %T", value), Accepted: "an object"}
	}
	var b Budget
	if err := cmp.Or(readMillis(fields, "leftMs", &b.Left), readMillis(fields, "idleMs", &b.Idle)); err != nil {
		return Budget{}, err
	}
	return b, nil
}

func readMillis(fields map[string]any, name string, to *time.Duration) error {
	value, ok := fields[name]
	if !ok {
		return nil
	}
	var data []byte
	switch value := value.(type) {
	case float64, int, int64, json.Number, bool, string, nil:
		data, _ = json.Marshal(value)
	case json.RawMessage:
		data = value
	}
	if *to, ok = fromMillis(data); !ok {
		return &timeout.ConfigError{Key: name, Value: string(data), Accepted: acceptedMillis}
	}
	return nil
}
