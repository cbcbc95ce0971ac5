package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// DeclarationKey is the key of a [Declaration] in a tool's _meta and, for a server as a whole, in
// capabilities.extensions.
const DeclarationKey = "io.github.tooldeadline/limits"

// A Declaration describes the limits of a tool to the clients of a server, so that a client knows before a call how
// long the call may take. It marshals to the wire form, in which durations are in milliseconds, with fractions:
//
//	{"totalMs":600000,"idleMs":120000,"graceMs":7000,"progressMs":10000,"maxTotalMs":1800000,"softMs":30000}
type Declaration struct {
	// Total and Idle are the limits that the server enforces; 0 or less means no such limit.
	Total, Idle time.Duration
	// Grace is the time after a limit in which an answer may still come; 0 or less means that there is no grace, or
	// that it is not known.
	Grace time.Duration
	// Progress is the longest time without a progress notification during a call whose tool beats at least that
	// often; 0 or less means that this time is not known.
	Progress time.Duration
	// MaxRequested is the largest total that a request may ask for with timeoutMs. 0 means that a request may not ask
	// for a total; a negative value means that there is no maximum.
	MaxRequested time.Duration
	// Soft is the time after which a call may be answered with a task. 0 means never; a negative value means at once.
	Soft time.Duration
	// Methods holds the limits of requests that call no tool, by method, such as "tools/list", or by a prefix with a
	// star, such as "resources/*". Only the declaration of a server as a whole has Methods, under "methods". nil
	// means no such limits.
	Methods map[string]Declaration
}

// Method returns the limits declared for the requests of a method: under its name in Methods, or else under the
// longest prefix with a star that matches. ok is false if nothing is declared for the method.
func (d Declaration) Method(method string) (limits Declaration, ok bool) {
	if limits, ok = d.Methods[method]; ok {
		return limits, true
	}
	longest := -1
	for pattern, l := range d.Methods {
		prefix, star := strings.CutSuffix(pattern, "*")
		if star && len(prefix) > longest && strings.HasPrefix(method, prefix) {
			longest, limits = len(prefix), l
		}
	}
	return limits, longest >= 0
}

// ReadDeclaration returns the declaration under [DeclarationKey] in a tool's _meta or in a server's
// capabilities.extensions. The bool is false if there is no declaration or it is invalid.
func ReadDeclaration(under map[string]any) (Declaration, bool) {
	value, ok := under[DeclarationKey]
	if !ok {
		return Declaration{}, false
	}
	data, err := json.Marshal(value)
	if err != nil {
		return Declaration{}, false
	}
	var d Declaration
	return d, json.Unmarshal(data, &d) == nil
}

// Object returns the wire form of d, for an SDK that takes JSON objects as maps.
func (d Declaration) Object() map[string]any {
	o := map[string]any{"totalMs": millis(max(d.Total, 0)), "idleMs": millis(max(d.Idle, 0))}
	if d.Grace > 0 {
		o["graceMs"] = millis(d.Grace)
	}
	if d.Progress > 0 {
		o["progressMs"] = millis(d.Progress)
	}
	if d.MaxRequested != 0 {
		o["maxTotalMs"] = millis(max(d.MaxRequested, 0))
	}
	if d.Soft != 0 {
		o["softMs"] = millis(max(d.Soft, 0))
	}
	if len(d.Methods) > 0 {
		methods := make(map[string]any, len(d.Methods))
		for method, l := range d.Methods {
			l.Methods = nil
			methods[method] = l.Object()
		}
		o["methods"] = methods
	}
	return o
}

// MarshalJSON returns the wire form of d.
func (d Declaration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Object()) }

// UnmarshalJSON reads the wire form. If totalMs or idleMs is missing, or a value is not a number from 0 to 2^53, in
// the object itself or among its methods, the error wraps a [*timeout.ConfigError]. After any error d does not
// change. A number that a time.Duration cannot hold becomes the longest Duration. Unknown names are ignored, and a name
// that is given twice is an error.
func (d *Declaration) UnmarshalJSON(data []byte) error {
	read, methods, err := readDeclaration(data)
	if err != nil {
		return err
	}
	if methods != nil {
		var byName map[string]json.RawMessage
		if exact.Unmarshal(methods, &byName) != nil {
			return &timeout.ConfigError{Key: "methods", Value: string(methods), Accepted: "an object of declared limits by method"}
		}
		read.Methods = make(map[string]Declaration, len(byName))
		for method, data := range byName {
			// Methods within a method are not read, so that a peer cannot cause a deep recursion.
			if read.Methods[method], _, err = readDeclaration(data); err != nil {
				return fmt.Errorf("methods: %s: %w", method, err)
			}
		}
	}
	*d = read
	return nil
}

// readDeclaration returns a Declaration without its Methods, and the methods as unread JSON.
func readDeclaration(data []byte) (read Declaration, methods json.RawMessage, _ error) {
	var fields map[string]json.RawMessage // not a struct, because then TOTALMS would be an error
	if err := exact.Unmarshal(data, &fields); err != nil {
		return read, nil, fmt.Errorf("policy: declared limits: %w", err)
	}
	for _, f := range []struct {
		name   string
		to     *time.Duration
		needed bool
		ifZero time.Duration // the meaning of a 0 on the wire
	}{
		{"totalMs", &read.Total, true, 0}, {"idleMs", &read.Idle, true, 0},
		{"graceMs", &read.Grace, false, 0}, {"progressMs", &read.Progress, false, 0},
		{"maxTotalMs", &read.MaxRequested, false, -1}, {"softMs", &read.Soft, false, -1},
	} {
		value, ok := fields[f.name]
		if !ok && !f.needed {
			continue
		}
		limit, ok := fromMillis(value)
		if !ok {
			return read, nil, &timeout.ConfigError{Key: f.name, Value: string(value), Accepted: acceptedMillis}
		}
		if *f.to = limit; limit == 0 {
			*f.to = f.ifZero
		}
	}
	return read, fields["methods"], nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// maxMillis is the number up to which all whole JSON numbers are exact in a float64.
const maxMillis = 1 << 53

const acceptedMillis = "a number of milliseconds from 0 to 2^53"

// fromMillis parses a number of milliseconds. It rounds up, so that even the shortest limit does not become 0. The
// result is false if the value is not a number from 0 to 2^53.
func fromMillis(value json.RawMessage) (time.Duration, bool) {
	var ms *float64
	if len(value) == 0 || json.Unmarshal(value, &ms) != nil || ms == nil || *ms < 0 || *ms > maxMillis {
		return 0, false
	}
	ns := math.Ceil(*ms * float64(time.Millisecond))
	if ns >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(ns), true
}
